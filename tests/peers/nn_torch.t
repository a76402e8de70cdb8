#!/usr/bin/env bash
# A small residual network and the layers that are not symmetric against PyTorch, in float64. Needs a Python with
# torch, HPC_TRAIN_TORCH_PYTHON or python3; skipped where there is none.
python=${HPC_TRAIN_TORCH_PYTHON:-python3}
export OMP_NUM_THREADS=1
if ! "$python" -c 'import numpy, torch' 2>/dev/null; then
    echo "1..0 # SKIP $python has no torch"
    exit 0
fi
exec "$python" "$top_srcdir/tests/peers/nn_torch.py" "$top_builddir/tests/peers/nn_models"
