#!/usr/bin/env bash
# Our optimizers, schedules, losses and metrics against Keras' own. Needs a Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON
# or python3; skipped where there is none. With
# HPC_TRAIN_LONG=1 all cases.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras or no tensorflow"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/nn_optimizers.py" "$top_builddir/tests/peers/nn_optimizers" ${HPC_TRAIN_LONG:+all}
