#!/usr/bin/env bash
# Our optimizers, schedules, losses and metrics against Keras' own. Needs a Python with keras and tensorflow, HPC_TRAIN_PEERS_PYTHON
# or python3; skipped where there is none. With
# HPC_TRAIN_LONG=1 all cases.
# shellcheck source=tests/peers/lib.sh
. "$top_srcdir/tests/peers/lib.sh"
needs keras tensorflow
exec "$python" "$top_srcdir/tests/peers/nn_optimizers.py" "$top_builddir/tests/peers/nn_optimizers" ${HPC_TRAIN_LONG:+all}
