#!/usr/bin/env bash
# Fine-tuning with frozen layers and rates of layers against Keras' own. Needs a Python with keras and tensorflow,
# HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer freeze.py "$top_builddir/hpc-train"
