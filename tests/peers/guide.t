#!/usr/bin/env bash
# Keras' guide to transfer learning against Keras' own fit. Needs a Python with keras and tensorflow,
# HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no tensorflow or no keras"
    exit 0
fi
exec "$python" "$top_srcdir/tests/peers/guide.py" "$top_builddir/hpc-train" 2> >(grep -v -e cuda -e '^WARNING: All log' -e '^[EIW]0000' >&2)
