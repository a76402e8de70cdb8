#!/usr/bin/env bash
# The text of --metrics-file, read by the Python package prometheus_client (HPC_TRAIN_PEERS_PYTHON or python3), and looked at by
# Prometheus' promtool; each skipped where it is missing.
# shellcheck source=tests/cluster/lib.sh
. "${top_srcdir:?run this with make check}/tests/cluster/lib.sh"
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
printer=${top_builddir:?}/tests/peers/metrics_file
if "$python" -c 'import prometheus_client.openmetrics' 2>/dev/null; then
    tap_of "prometheus_client" "$python" "$top_srcdir/tests/peers/metrics_file.py" "$printer"
else
    skip "prometheus_client" "$python has no prometheus_client"
fi
if command -v promtool >/dev/null; then
    capture promtool check metrics < <("$printer")
    is "$status $out$err" "0 " "promtool finds nothing" || diag "$("$printer")"
else
    skip "promtool" "there is no promtool (Debian's package prometheus)"
fi
done_testing
