#!/usr/bin/env bash
# Rotation, zoom, translation, contrast, RandAugment, MixUp and CutMix against Keras' own layers. Needs a Python with keras and
# tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer augment.py "$top_builddir/tests/peers/augment"
