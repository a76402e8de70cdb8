#!/bin/bash
# Parameter servers, in the host's memory, and workers on devices.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"

# serve NAME DEVICE-OF-WORKER-0 DEVICE-OF-WORKER-1: two servers, synchronous, as on-cpu
serve() {
    rm -f "$own/account"
    local port=$((27000 + RANDOM % 900)) cluster rank role index device pids=() worst=0
    cluster="\"ps\":[\"127.0.0.1:$port\",\"127.0.0.1:$((port + 1))\"],\"worker\":[\"127.0.0.1:$((port + 2))\",\"127.0.0.1:$((port + 3))\"]"
    for rank in 0 1 2 3; do
        role=ps index=$rank device=cuda
        if [ $rank -ge 2 ]; then role=worker index=$((rank - 2)) device=${*:rank:1}; fi
        HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.$1\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index},\"rank\":$rank,
            \"local_rank\":$rank,\"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":4,\"gpus\":0}]}" \
            timeout --kill-after=5 100 "$train" fit --strategy parameter-server --ps-sync --model "$own/tiny.json" --resize 28x28 --data "$own/small" \
            --validation-data "$own/small" --augment flip,crop:3 --global-batch-size 4 --epochs 2 --seed 3 --verbose 0 \
            --summary-json "$own/$1.json" --device "$device" "${@:4}" >"$own/$1.$rank.out" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || worst=$?; done
    is $worst 0 "$1" || diag "$(cat "$own/$1".*.out)"
}
serve workers-on-devices cuda cuda
same_as_cpu workers-on-devices
is "$(cat "$own/account" 2>/dev/null | wc -l)" 2 "both workers, and no server, have a device"
serve one-on-a-device cpu auto
same_as_cpu one-on-a-device
# Of two pictures the statistics are the signs of what rounding leaves between them: of ten they are not.
for size in 10 6; do # of the workers: one that looks for engines while the other trains comes too late
    fit_small warm-in-bf16 --device cuda --precision bf16 --model "$own/norm.json" --global-batch-size $size
done
serve in-bf16 cuda cuda --precision bf16 --model "$own/norm.json" --global-batch-size 20
fit_small in-bf16-alone --device cuda --precision bf16 --model "$own/norm.json" --global-batch-size 20
ok "$(awk -v a="$(number in-bf16-alone val_loss)" -v b="$(number in-bf16 val_loss)" 'BEGIN { d = a - b; print !(a > 0 && d < 0.1 && d > -0.1) }')" \
    "bf16 on devices, statistics of each worker's pictures: near ($(number in-bf16-alone val_loss), $(number in-bf16 val_loss))"
# Servers know of no loss scale: what overflows is computed again, and no step is left out.
serve served-in-fp16 cuda cuda --precision fp16 --model "$own/steep.json"
fit_small steep-in-fp32 --device cuda --model "$own/steep.json"
near_in_fp16 steep-in-fp32 served-in-fp16 0.001
unset HPC_TRAIN_TEST_ACCOUNT

done_testing
