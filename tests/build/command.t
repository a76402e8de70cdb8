#!/bin/bash
# command.t: the command's bench on networks that other tests leave out.
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
done_testing
