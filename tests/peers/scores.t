#!/usr/bin/env bash
# scores.t: precision, recall, F1 and AUC against Keras' metrics, on random outputs. Needs a Python with keras and
# tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
exec "$python" "$top_srcdir/tests/peers/scores.py" "$top_builddir/tests/peers/scores"
