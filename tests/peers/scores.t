#!/usr/bin/env bash
# scores.t: precision, recall, F1 and AUC against Keras' metrics, on random outputs. Needs a Python with keras and
# tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras or no tensorflow"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/scores.py" "$top_builddir/tests/peers/scores"
