#!/bin/bash
# command.t: what the hpc-train command does before any subcommand runs.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
unset OMP_WAIT_POLICY GOMP_SPINCOUNT

# libgomp prints what it has understood each time it is loaded; the last is what the program runs with.
spin_count() { env "$@" OMP_DISPLAY_ENV=verbose "$top_builddir/hpc-train" --version 2>&1 | sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'/\1/p" | tail -n 1; }
if [ -z "$(spin_count)" ]; then
    skip_all "this OpenMP library is not libgomp"
fi
is "$(spin_count)" 3000 "threads wait briefly"
is "$(spin_count GOMP_SPINCOUNT=70)" 70 "unless the user says how long"
is "$(spin_count OMP_WAIT_POLICY=passive)" 0 "or how"
is "$("$top_builddir/hpc-train" --version)" "$(GOMP_SPINCOUNT=70 "$top_builddir/hpc-train" --version)" "and the command gets its arguments"

like "$("$top_builddir/hpc-train" bench --model resnet50v2 --resize 32x32 --classes 10 --batch-size 2 --steps 1 --profile)" \
    'conv5_block3_3_conv .*resnet50v2: [0-9.]+ images/s' "a residual network of any size, with its layers' times"
like "$("$top_builddir/hpc-train" bench --model resnet51 2>&1)" 'resnet51.*mnist-cnn.*resnet152v2' "an unknown model is answered with all there are"
done_testing
