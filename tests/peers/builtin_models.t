#!/usr/bin/env bash
# The built-in models of keras.applications against Keras' own; HPC_TRAIN_LONG=1: the large ones, too. Needs a Python
# with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer builtin_models.py "$top_builddir/tests/peers/nn_files" "$top_builddir/hpc-train"
