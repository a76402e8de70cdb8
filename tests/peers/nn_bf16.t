#!/usr/bin/env bash
# bf16 beside Keras' mixed_bfloat16. Needs a Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3, and a processor
# with bf16; skipped elsewhere.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
if ! why=$("$top_builddir/hpc-train" summary --model mnist-cnn --precision bf16 2>&1 >/dev/null); then
    echo "1..0 # SKIP $why"
    exit 0
fi
folder=$(mktemp -d /tmp/hpc-train-bf16.XXXXXX) || exit
trap 'rm -rf "$folder"' EXIT
"$python" "$top_srcdir/tests/peers/nn_bf16.py" "$top_builddir/hpc-train" "$folder"
