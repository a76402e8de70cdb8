#!/usr/bin/env bash
# Models of keras.applications against Keras' own; HPC_TRAIN_LONG=1: more of them, at their default sizes, too. Needs a
# Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer applications.py "$top_builddir/tests/peers/nn_models" "$top_builddir/hpc-train"
