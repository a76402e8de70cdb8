#!/usr/bin/env bash
# refused.t: layers and objects of Keras that there are not here are named, all of them at once. Needs a Python with keras
# and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras or no tensorflow"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/refused.py" "$top_builddir/hpc-train" 2> >(grep -v -e cuda -e '^WARNING: All log' -e '^[EIW]0000' >&2)
