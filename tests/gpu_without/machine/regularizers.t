#!/bin/bash
# Penalties of weights on devices: in the loss and in the updates, called and recorded, of one rank, of several and of replicas, by
# each strategy and in fp16, as on the CPU.
# shellcheck disable=SC2034,SC2154

needs=mpirun
# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"

penalize() { sed 's/"units": [0-9]*/&, "bias_regularizer": {"class_name": "L2", "config": {"l2": 0.3}}/
    s/"\(units\|filters\)": [0-9]*/&, "kernel_regularizer": {"class_name": "L1L2", "config": {"l1": 0.001, "l2": 0.01}}/
    s/"BatchNormalization", "config": {/&"gamma_regularizer": {"class_name": "L2", "config": {"l2": 0.05}}, /' "$1" >"$2"; }
penalize "$own/tiny.json" "$own/penalized.json"
penalize "$own/synced.json" "$own/penalized-norm.json"
model=(--model "$own/penalized.json" --learning-rate 0.05)
# alike NAME NAME: losses of two runs
alike() {
    same_as "$1" "$2" "loss val_loss"
}

# ---- one device ----
fit_small bare --device cpu --learning-rate 0.05
fit_small plain-cpu --device cpu "${model[@]}"
ok "$(awk -v a="$(number bare loss)" -v b="$(number plain-cpu loss)" 'BEGIN { print !(b > a + 0.1) }')" "the loss has the penalties ($(number bare loss), $(number plain-cpu loss))"
for record in 1 0; do # plain SGD is not in the product of a layer with a penalty
    HPC_TRAIN_RECORD=$record fit_small plain --device cuda "${model[@]}"
    alike plain-cpu plain
done
adam=(--model "$own/penalized-norm.json" --optimizer adam --global-clip-norm 0.5)
fit_small adam-cpu --device cpu "${adam[@]}"
fit_small adam --device cuda "${adam[@]}"
alike adam-cpu adam
fit_small gathering-cpu --device cpu "${model[@]}" --gradient-accumulation 2 --momentum 0.9
fit_small gathering --device cuda "${model[@]}" --gradient-accumulation 2 --momentum 0.9
alike gathering-cpu gathering
fit_small fp16 --device cuda "${model[@]}" --precision fp16 # the loss scale is not a factor of the penalties
near_in_fp16 plain-cpu fp16
if [ -e "$top_builddir/tests/unit/nn/run/test_penalty" ]; then
    capture env HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_BACKEND=cuda "$top_builddir/tests/unit/nn/run/test_penalty"
    is "$status" 0 "test_penalty's cases there" || diag "$out" "$err"
else
    skip "test_penalty's cases there" "the unit tests are not built: no cmocka"
fi

# ---- ranks ----
cases=("data --strategy multi-worker-mirrored" "columns --strategy hybrid --hybrid-form columns")
[ -z "${HPC_TRAIN_LONG-}" ] || cases+=("rows --strategy hybrid --hybrid-form rows" "stages --strategy pipeline --micro-batches 2")
several=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
for case in "${cases[@]}"; do
    read -r name options <<<"$case"
    ranks=("${several[@]}")
    # shellcheck disable=SC2086 # several words
    fit_small "$name" --device cuda "${model[@]}" $options
    ranks=()
    alike plain-cpu "$name"
done

# ---- replicas on devices of one process: the one that updates for all, and each for itself ----
export HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_DEVICES=2
for strategy in mirrored central-storage; do
    fit_nccl "$strategy" --device cuda "${model[@]}" --replicas 2 --strategy $strategy
    alike plain-cpu $strategy
done
done_testing
