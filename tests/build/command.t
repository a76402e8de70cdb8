#!/bin/bash
# command.t: the command's bench on networks that other tests leave out; --device without a GPU.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}

like "$("$top_builddir/hpc-train" bench --model resnet50v2 --resize 32x32 --classes 10 --batch-size 2 --steps 1 --profile)" \
    'conv5_block3_3_conv .*resnet50v2: [0-9.]+ images/s' "a residual network of any size, with its layers' times"
like "$("$top_builddir/hpc-train" bench --model resnet51 2>&1)" 'resnet51.*mnist-cnn.*resnet152v2' "an unknown model is answered with all there are"
capture "$top_builddir/hpc-train" bench --model mnist-convnet --data synthetic --batch-size 2 --steps 1
is "$status" 0 "bench's data are synthetic, which may be said"
like "$out" '^mnist-convnet: [0-9.]+ images/s' "bench prints images/s"
capture "$top_builddir/hpc-train" bench --model mnist-convnet --data /tmp
is "$status" 64 "other data are refused"
like "$err" "--data: bench accepts .synthetic. only.*'/tmp' are timed by hpc-train fit" "bench --data DIR: the error names fit"

# ---- --device: where the GPU module is not, and where there is no driver ----
empty=$(mktemp -d)
at_exit "rmdir '$empty'"
steps=(--model mnist-convnet --data synthetic:12 --batch-size 2)
capture env HPC_TRAIN_MODULE_DIR="$empty" "$top_builddir/hpc-train" fit "${steps[@]}" --device cuda
is "$status" 78 "--device cuda without the module ends as a wrong installation does"
like "$err" "hpctrain-cuda.so is not installed.*--device cpu" "and says what is missing"
is "$(wc -l <<<"$err")" 1 "in one line"
capture "$top_builddir/hpc-train" fit "${steps[@]}" --device abacus
is "$status" 64 "an unknown device is refused"

if [ -e "$top_builddir/.libs/hpctrain-cuda.so" ] && [ ! -e /dev/nvidiactl ]; then
    capture env HPC_TRAIN_MODULE_DIR="$top_builddir/.libs" "$top_builddir/hpc-train" fit "${steps[@]}" --device cuda
    is "$status" 78 "--device cuda without a driver"
    like "$err" "driver.*--device cpu" "says so"
    is "$(wc -l <<<"$err")" 1 "in one line"
    capture env HPC_TRAIN_MODULE_DIR="$top_builddir/.libs" "$top_builddir/hpc-train" fit "${steps[@]}" --device auto
    is "$status" 0 "--device auto takes the CPU then"
    is "$err" "" "and says nothing of it"
else
    skip "no driver" "the GPU module is not built, or a GPU is here"
fi
done_testing
