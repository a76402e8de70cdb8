#!/usr/bin/env bash
# torchvision's models, saved as safetensors, as weights of the built-in models in its form; HPC_TRAIN_LONG=1: the large ones,
# too. Needs a Python with torch and torchvision, HPC_TRAIN_TORCH_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_TORCH_PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
    echo "1..0 # SKIP $python has no torch or no torchvision"
    exit 0
fi
case $top_builddir in /*) ;; *) top_builddir=$PWD/$top_builddir ;; esac
exec "$python" "$top_srcdir/tests/peers/torchvision_models.py" "$top_builddir/hpc-train"
