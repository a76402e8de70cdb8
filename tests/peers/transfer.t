#!/usr/bin/env bash
# Transfer learning with MobileNetV2 on CIFAR-10's JPEGs, frozen and then unfrozen, beside Keras. Ten minutes on two
# cores. Needs a Python with tensorflow, HPC_TRAIN_PEERS_PYTHON or python3, and HPC_TRAIN_CIFAR_JPEG: an archive,
# compressed or not, of train/CLASS/NUMBER.jpg and test/CLASS/NUMBER.jpg; skipped where one is missing.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3
if ! "$python" -c 'import keras, tensorflow' 2>/dev/null; then
    echo "1..0 # SKIP $python has no tensorflow or no keras"
    exit 0
fi
if [ ! -f "${HPC_TRAIN_CIFAR_JPEG:-}" ]; then
    echo "1..0 # SKIP HPC_TRAIN_CIFAR_JPEG names no archive"
    exit 0
fi
exec "$python" "$top_srcdir/tests/peers/transfer.py" "$top_builddir/hpc-train" "$HPC_TRAIN_CIFAR_JPEG" 2> >(grep -v -e cuda -e '^WARNING: All log' -e '^[EIW]0000' >&2)
