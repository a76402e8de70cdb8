#!/usr/bin/env bash
# callbacks.t: early stopping and plateaus against Keras' own callbacks, on random sequences. Needs a Python with keras and
# tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
exec "$python" "$top_srcdir/tests/peers/callbacks.py" "$top_builddir/tests/peers/callbacks" "$([ -n "${HPC_TRAIN_LONG-}" ] && echo 2000 || echo 200)"
