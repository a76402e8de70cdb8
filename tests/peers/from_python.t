#!/bin/bash
# hpc_train.py: Keras models are trained by one call from Python, alone, in a step of srun and in a job. Needs a cluster of
# two nodes, which sees the Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/../cluster/plugin_lib.sh"
needs_plugin
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
sandbox_run "$python" -c 'import keras, tensorflow' 2>/dev/null || skip_all "$python has no tensorflow or no keras there"
cp "$top_srcdir"/tests/peers/from_python.py "$top_srcdir"/etc/python/hpc_train.py "$top_srcdir"/etc/examples/transfer_learning.py "$work_here"
sandbox_run --root chmod -R a+rwX "$work"
run_limit=500 # Keras takes long to start on a busy machine
capture sandbox_run "$python" "$work/from_python.py" "$work"
while read -r verdict _ _ text; do ok "$([ "$verdict" = ok ]; echo $?)" "$text"; done < <(grep -E '^(not )?ok ' <<<"$out" | sed 's/^not ok/not_ok/')
ran "all cases are tried" || diag "$out" "$err"
done_testing
