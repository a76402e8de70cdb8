#!/usr/bin/env bash
# Our training against Keras' own. Needs a Python with keras, HPC_TRAIN_PEERS_PYTHON
# or python3; skipped where there is none.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import keras' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/nn_keras.py" "$top_builddir/tests/peers/nn_losses"
