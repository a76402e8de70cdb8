#!/usr/bin/env bash
# Our training against Keras' own. Needs a Python with keras, HPC_TRAIN_PEERS_PYTHON
# or python3; skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras
exec "$python" "$top_srcdir/tests/peers/nn_keras.py" "$top_builddir/tests/peers/nn_losses"
