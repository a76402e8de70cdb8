#!/usr/bin/env bash
# bf16 beside Keras' mixed_bfloat16. Needs a Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON or python3, and a processor
# with bf16; skipped elsewhere.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras or no tensorflow"
    exit 0
fi
if ! why=$("$top_builddir/hpc-train" summary --model mnist-cnn --precision bf16 2>&1 >/dev/null); then
    echo "1..0 # SKIP $why"
    exit 0
fi
folder=$(mktemp -d /tmp/hpc-train-bf16.XXXXXX) || exit
trap 'rm -rf "$folder"' EXIT
"$python" "$top_srcdir/tests/peers/nn_bf16.py" "$top_builddir/hpc-train" "$folder"
