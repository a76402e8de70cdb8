#!/usr/bin/env bash
# Training with regularizers (L1, L2, L1L2 of kernels, biases, scales and offsets) against Keras' own. Needs a Python
# with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer regularizers.py "$top_builddir/hpc-train"
