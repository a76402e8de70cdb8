#!/usr/bin/env bash
# Checkpoints read with Python's safetensors package. Needs a Python with it and numpy, HPC_TRAIN_PEERS_PYTHON or python3; skipped
# where one is missing.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs numpy safetensors
if [ ! -x "$top_builddir/tests/peers/checkpoint" ]; then
    echo "1..0 # SKIP cmocka is missing: tests/peers/checkpoint is not built"
    exit 0
fi
exec "$python" "$top_srcdir/tests/peers/checkpoint.py" "$top_builddir/tests/peers/checkpoint"
