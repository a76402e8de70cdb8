#!/usr/bin/env bash
# Checkpoints read with Python's safetensors package. Needs a Python with it and numpy, HPC_TRAIN_PEERS_PYTHON or python3; skipped
# where one is missing.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import numpy, safetensors' 2>/dev/null; then
    echo "1..0 # SKIP $python has no numpy or no safetensors"
    exit 0
fi
if [ ! -x "$top_builddir/tests/peers/checkpoint" ]; then
    echo "1..0 # SKIP cmocka is missing: tests/peers/checkpoint is not built"
    exit 0
fi
exec "$python" "$top_srcdir/tests/peers/checkpoint.py" "$top_builddir/tests/peers/checkpoint"
