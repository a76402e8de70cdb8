#!/usr/bin/env bash
# Every layer's outputs, loss and gradients against Keras' own. Needs a Python with tensorflow and keras,
# HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
peer nn_layers.py "$top_builddir/tests/peers/nn_layers"
