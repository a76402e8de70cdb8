#!/usr/bin/env bash
# Data sets read by us and by numpy, Keras and TensorFlow. Needs a Python with tensorflow,
# HPC_TRAIN_TF_PYTHON, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_TF_PYTHON:-${HPC_TRAIN_PEERS_PYTHON:-python3}}
if ! "$python" -c 'import importlib.util as u; assert u.find_spec("tensorflow") and u.find_spec("keras")' 2>/dev/null; then
    echo "1..0 # SKIP $python has no tensorflow"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/data_peers.py" "$top_builddir/tests/peers/data_dump"
