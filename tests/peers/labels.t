#!/usr/bin/env bash
# Labels of a CSV file against Keras' own training: several classes per picture, and regression. Needs a Python with keras and
# tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer labels.py "$top_builddir/hpc-train"
