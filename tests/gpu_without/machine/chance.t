#!/bin/bash
# tests/gpu_without/machine/*.t where streams run at moments drawn, and where cuDNN has no engine for a quarter of the graphs, drawn,
# too; and what tests/gpu/run asks of ranks. SEEDS: some numbers.
# shellcheck disable=SC2154
# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
own=$(mktemp -d)
at_exit "rm -rf '$own'"
[ -e "$top_builddir/tests/gpu_without/machine/.libs/hpctrain-cuda.so" ] || skip_all "the GPU module is not built"

# run NAME VARIABLE=VALUE…
run() {
    local test
    for test in device ranks replicas servers; do
        env -u HPC_TRAIN_LONG "${@:2}" bash "$top_srcdir/tests/gpu_without/machine/$test.t" >"$own/$1" 2>&1
        is "$(grep -c '^not ok' "$own/$1")" 0 "$1: $test" || diag "$(grep -A 6 '^not ok' "$own/$1")"
        like "$(tail -n 1 "$own/$1")" '^1\.\.[1-9]' "to its end"
    done
}
for seed in ${SEEDS-1 2}; do
    run "moments by chance, $seed" HPC_TRAIN_TEST_SCHEDULE="$seed"
    run "engines by chance, $seed" HPC_TRAIN_TEST_ENGINES="$seed"
done

# Without HPC_TRAIN_LONG: the tests of this folder, which check-long runs besides, look at every access of the kernels.
capture env -u HPC_TRAIN_LONG HPC_TRAIN_TEST_PATIENCE=4 HPC_TRAIN_BUILD="$top_builddir" HPC_TRAIN_TEST_MODULE_DIR="$top_builddir/tests/gpu_without/machine/.libs" HPC_TRAIN_TEST_NCCL=1 \
    XDG_CACHE_HOME="$own/cache" "$top_srcdir/tests/gpu/run" --part tests --results "$own/results" \
    --only '^unit-|^ranks-|^workers-|^cpu-mnist'
for step in unit-test_conv2d unit-test_ops cpu-mnist-cnn cpu-mnist-convnet ranks-2 ranks-4 ranks-2-parts ranks-2-pipeline ranks-2-auto \
    ranks-2-back \
    ranks-2-pipeline-fp16 ranks-2-back-fp16 workers-2 ranks-killed ranks-stopped; do
    like "$(grep -a "^$step	" "$own/results/steps.tsv")" "	ok" "tests/gpu/run: $step"
done

# Whatever call fails on one of two ranks: within a minute both have ended, or gone on without it.
command -v mpirun >/dev/null || done_testing
export HPC_TRAIN_MODULE_DIR=$top_builddir/tests/gpu_without/machine/.libs HPC_TRAIN_TEST_NCCL=1 XDG_CACHE_HOME=$own/cache
# shellcheck disable=SC2016 # each rank expands
ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK
    [ "$OMPI_COMM_WORLD_RANK" != 1 ] || export HPC_TRAIN_TEST_REFUSES=$REFUSED
    exec "$@"' rank)
for strategy in multi-worker-mirrored pipeline hybrid auto; do
    for call in nccl:{1,2,4,9,16,30} cudaGraphLaunch:3 cudaStreamEndCapture:{1,2} cudaGraphInstantiate:2 launch:{5,30,60} cudaMalloc:8 \
        cudaHostAlloc:4 cudaMemcpyAsync:{4,9,25} cudaEventRecord:{9,30} cudaStreamWaitEvent:{2,3,12} cudaEventQuery:2; do
        capture env REFUSED="$call" timeout 60 "${ranks[@]}" "$top_builddir/hpc-train" fit --model "$top_srcdir/tests/strategy/residual.json" \
            --data synthetic:40 --global-batch-size 8 --epochs 2 --verbose 0 --device cuda --strategy $strategy --bucket-bytes 20000
        like "$status" '^(0|69|70|78)$' "$strategy, $call fails on rank 1" || diag "$err"
        ((status == 0)) || like "$err" "hpc-train: .*(rank 1|emulated)" "and that is said"
    done
done
done_testing
