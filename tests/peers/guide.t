#!/usr/bin/env bash
# Keras' guide to transfer learning against Keras' own fit. Needs a Python with keras and tensorflow,
# HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer guide.py "$top_builddir/hpc-train"
