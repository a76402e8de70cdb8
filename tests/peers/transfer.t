#!/usr/bin/env bash
# Transfer learning with MobileNetV2 on CIFAR-10's JPEGs, frozen and then unfrozen, beside Keras. Ten minutes on two
# cores. Needs a Python with tensorflow, HPC_TRAIN_PEERS_PYTHON or python3, and HPC_TRAIN_CIFAR_JPEG: an archive,
# compressed or not, of train/CLASS/NUMBER.jpg and test/CLASS/NUMBER.jpg; skipped where one is missing.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
if [ ! -f "${HPC_TRAIN_CIFAR_JPEG:-}" ]; then
    echo "1..0 # SKIP HPC_TRAIN_CIFAR_JPEG names no archive"
    exit 0
fi
peer transfer.py "$top_builddir/hpc-train" "$HPC_TRAIN_CIFAR_JPEG"
