#!/usr/bin/env bash
# Models and weights in files, between Keras and us. Needs a Python with keras and safetensors,
# HPC_TRAIN_PEERS_PYTHON or python3, and hpc-train built with HDF5; skipped where one is missing. With
# HPC_TRAIN_LONG=1 the large models too.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras safetensors
if ! grep -q '^HDF5_CPPFLAGS = .*HPCT_HDF5_LIBRARY' "$top_builddir/Makefile"; then
    echo "1..0 # SKIP this is built without HDF5"
    exit 0
fi
export TF_CPP_MIN_LOG_LEVEL=3
exec "$python" "$top_srcdir/tests/peers/nn_files.py" "$top_builddir/tests/peers/nn_files" ${HPC_TRAIN_LONG:+all}
