#!/bin/bash
# Checkpoints of runs on devices: a run that continues has the bits of one that was not cut, on one device, on those of several
# ranks, on replicas; on other devices or the CPU the same losses to fp32 rounding. HPC_TRAIN_LONG=1: more of them.
# shellcheck disable=SC2034,SC2154

needs=mpirun
# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"
export HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_DEVICES=3
saves=(--model "$own/norm.json" --optimizer adam)

# cut NAME OPTION…: continues from a checkpoint in the first epoch and one in the second, or from that of step `only`
cut() {
    local name=$1 step
    [ ${#ranks[@]} = 0 ] || fit_nccl "$name-warm" "${saves[@]}" "${@:2}" # ranks that measure at once may choose other engines
    fit_nccl "$name" "${saves[@]}" --save-weights "$own/uncut.safetensors" "${@:2}"
    for step in ${only-3 15}; do
        rm -rf "$own/saved"
        # the first one: later ones are left out while one is still written
        fit_nccl "$name-saving-$step" "${saves[@]}" --save-weights "$own/saving.safetensors" --checkpoint-dir "$own/saved" \
            --checkpoint-every "$step" --checkpoint-keep 20 "${@:2}"
        is "$(cmp "$own/uncut.safetensors" "$own/saving.safetensors" 2>&1)" "" "$name: checkpoints change nothing"
        from=$(find "$own/saved" -name "step-*0$step" | tail -n 1)
        rm -rf "$own/other"
        fit_nccl "$name-from-$step" "${saves[@]}" --save-weights "$own/after.safetensors" --checkpoint-dir "$own/other" --resume "${from:-none}" "${@:2}"
        is "$(cmp "$own/uncut.safetensors" "$own/after.safetensors" 2>&1)" "" "$name, from step $step: the bits of the uncut run"
    done
}
# elsewhere NAME OPTION…: continues the last case's
elsewhere() {
    rm -rf "$own/other"
    fit_nccl "$1" "${saves[@]}" --checkpoint-dir "$own/other" --resume "$from" "${@:2}"
    same_as "$uncut" "$1" "loss val_loss"
}
ranks_of() { # N
    ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK; exec "$@"' rank)
}

[ -n "${HPC_TRAIN_LONG-}" ] || only=15
cut one-in-fp16 --device cuda --precision fp16
ranks_of 2
cut ranks-of-replicas --device cuda --replicas 2
lossy=(--allow-lossy --compress-warmup 3)
cut powersgd --device cuda --compress powersgd:2 "${lossy[@]}"
ranks=()
cut central-storage --device cuda --replicas 3 --strategy central-storage --gradient-accumulation 2
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    cut one-device --device cuda --gradient-accumulation 2
    cut replicas --device cuda --replicas 3
    cut replicas-in-fp16 --device cuda --replicas 3 --precision fp16
    ranks_of 2
    cut two-ranks --device cuda --gradient-accumulation 3
    cut top-k-in-fp16 --device cuda --precision fp16 --compress topk:0.1 "${lossy[@]}"
    cut hybrid --device cuda --strategy hybrid
    cut two-stages --device cuda --strategy pipeline --micro-batches 2
    ranks=()
fi
uncut=whole saves=(--model "$own/tiny.json" --optimizer adam --gradient-accumulation 2) # the same on any number of ranks
cut $uncut --device cuda --replicas 3
elsewhere on-one-device --device cuda
elsewhere by-replicas-of-the-cpu --device cpu --replicas 3
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    elsewhere on-two-replicas --device cuda --replicas 2
    elsewhere central --device cuda --replicas 3 --strategy central-storage
    elsewhere by-the-cpu --device cpu
fi

done_testing
