#!/usr/bin/env bash
# Exported models in onnxruntime and in Keras. Needs a Python with keras, onnx and onnxruntime, HPC_TRAIN_PEERS_PYTHON or python3;
# skipped where there is none.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras onnx onnxruntime
case $top_builddir in /*) ;; *) top_builddir=$PWD/$top_builddir ;; esac
peer onnx_models.py "$top_builddir/hpc-train"
