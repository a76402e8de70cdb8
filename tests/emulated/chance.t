#!/bin/bash
# tests/apart/device.t where streams run at moments drawn, and where cuDNN has no engine for a quarter of the graphs, drawn,
# too; on the module without CUDA; and what tests/gpu/run asks of ranks. SEEDS: some numbers.
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
own=$(mktemp -d)
at_exit "rm -rf '$own'"
[ -e "$top_builddir/tests/emulated/.libs/hpctrain-cuda.so" ] || skip_all "the GPU module is not built"

# run NAME VARIABLE=VALUE…
run() {
    env "${@:2}" bash "$top_srcdir/tests/apart/device.t" >"$own/$1" 2>&1
    is "$(grep -c '^not ok' "$own/$1")" 0 "$1" || diag "$(grep -A 6 '^not ok' "$own/$1")"
    like "$(tail -n 1 "$own/$1")" '^1\.\.[1-9]' "to its end"
}
for seed in ${SEEDS-1 2}; do
    run "moments by chance, $seed" HPC_TRAIN_TEST_SCHEDULE="$seed"
    run "engines by chance, $seed" HPC_TRAIN_TEST_ENGINES="$seed"
done
run "without CUDA" HPC_TRAIN_TEST_GPU=apart

capture env HPC_TRAIN_BUILD="$top_builddir" HPC_TRAIN_MODULE_DIR="$top_builddir/tests/emulated/.libs" HPC_TRAIN_TEST_NCCL=1 \
    XDG_CACHE_HOME="$own/cache" "$top_srcdir/tests/gpu/run" --part tests --results "$own/results" \
    --only '^unit-|^ranks-|^workers-|^cpu-mnist'
for step in unit-test_nn_ops cpu-mnist-cnn cpu-mnist-convnet ranks-2 ranks-4 ranks-2-parts ranks-2-pipeline ranks-2-auto ranks-2-back \
    ranks-2-pipeline-fp16 ranks-2-back-fp16 workers-2 ranks-killed ranks-stopped; do
    like "$(grep -a "^$step	" "$own/results/steps.tsv")" "	ok" "tests/gpu/run: $step"
done
done_testing
