#!/usr/bin/env bash
# refused.t: layers and objects of Keras that there are not here are named, all of them at once. Needs a Python with keras
# and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer refused.py "$top_builddir/hpc-train"
