#!/usr/bin/env bash
# Exported models in onnxruntime and in Keras. Needs a Python with keras, onnx and onnxruntime, HPC_TRAIN_PEERS_PYTHON or python3;
# skipped where there is none.
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
export TF_CPP_MIN_LOG_LEVEL=3
if ! "$python" -c 'import keras, onnx, onnxruntime' 2>/dev/null; then
    echo "1..0 # SKIP $python has no keras, no onnx or no onnxruntime"
    exit 0
fi
case $top_builddir in /*) ;; *) top_builddir=$PWD/$top_builddir ;; esac
exec "$python" "$top_srcdir/tests/peers/onnx_models.py" "$top_builddir/hpc-train" 2> >(grep -v -e cuda -e '^WARNING: All log' -e '^[EIW]0000' >&2)
