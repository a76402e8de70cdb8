#!/bin/bash
# Several devices of a rank, with a replica on each, and calls that fail in company.
# shellcheck disable=SC2034,SC2154

needs=mpirun
# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"
low=(--device cuda --precision fp16 --global-batch-size 4)
fit_small steep-in-fp16 "${low[@]}" --model "$own/steep.json"
export HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_RECORDINGS=$own/with-nccl HPC_TRAIN_TEST_DEVICES=3

ranks=()
fit_nccl replicas --device cuda --replicas 3
same_as_cpu replicas
is "$(replays)" "3 19 replays" "a step of all replicas is one recording"
like "$(<"$own/replicas.json")" '"replicas": 3' "which the summary says"
is "$(sed 's/ bytes sent.*//' "$own/account")" $((12 * (2 * 40 + 2 * 12) + 3 * 20 * 24)) "each is sent the numbers of its pictures, and flags"
HPC_TRAIN_TEST_FULL=2 fit_nccl central --device cuda --strategy central-storage --replicas 3
same_as_cpu central
is "$(sed 's/ bytes sent.*//' "$own/account")" $(((4 * 28 * 28 + 4) * (2 * 40 + 2 * 12) + 3 * 20 * 24)) "where one has no room for all, its pictures"
like "$(<"$own/central.json")" '"strategy": "central-storage"' "one update for all, the summary says"
fit_nccl central-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy central-storage --replicas 3
ok "$(near "$(number steep-in-fp16 loss)" "$(number central-in-fp16 loss)")" \
    "in fp16 they leave out the steps of one ($(number steep-in-fp16 loss), $(number central-in-fp16 loss))"
fit_nccl central-adam --device cuda --strategy central-storage --replicas 3 --optimizer adam --gradient-accumulation 2
fit_small central-adam-on-cpu --device cpu --optimizer adam --gradient-accumulation 2
ok "$(near "$(number central-adam-on-cpu loss)" "$(number central-adam loss)")" "with slots, and gradients of two batches: the loss is the CPU's"
ok "$(($(number central bytes_sent_per_step) < 3 * $(number replicas bytes_sent_per_step) / 2))" "weights are sent besides gradients"
fit_nccl central-of-one --device cuda --strategy central-storage
same_as_cpu central-of-one
fit_nccl replicas-uneven --device cuda --replicas 3 --global-batch-size 13 --optimizer adam
ranks=()
fit_small replicas-on-cpu --device cpu --global-batch-size 13 --optimizer adam
same_as replicas-on-cpu replicas-uneven
echo '{"0": 5, "3": 0, "9": 0.5}' >"$own/weights.json"
weighted=(--class-weight "$own/weights.json" --loss categorical_focal_crossentropy --metrics "f1,auc" --global-batch-size 13)
fit_small weighted-on-cpu --device cpu "${weighted[@]}" --confusion-matrix "$own/matrix-on-cpu"
for replicas in "" "--replicas 3" "--replicas 3 --strategy central-storage"; do
    # shellcheck disable=SC2086 # several words
    fit_nccl weighted --device cuda "${weighted[@]}" --confusion-matrix "$own/matrix" $replicas
    same_as weighted-on-cpu weighted "loss val_loss val_auc"
    is "$(cmp "$own/matrix-on-cpu" "$own/matrix" 2>&1)" "" "so is the confusion matrix"
done
mixed=(--augment "rotation:0.1,mixup:0.4" --global-batch-size 13)
fit_small mixed-on-cpu --device cpu "${mixed[@]}"
fit_nccl mixed --device cuda "${mixed[@]}" --replicas 3
same_as mixed-on-cpu mixed "loss accuracy val_loss"
ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK; exec "$@"' rank)
fit_nccl ranks-of-replicas --device cuda --replicas 2 --precision fp16
ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number ranks-of-replicas loss)" 'BEGIN { d = a - b; print !(d < 0.02 && d > -0.02 && d != 0) }')" \
    "two ranks of two replicas, in fp16: near ($(number on-cpu loss), $(number ranks-of-replicas loss))"
is "$(replays)" "4 19 replays" "one recording for all four"
ranks=()
if [ -z "${HPC_TRAIN_TEST_ENGINES-}${HPC_TRAIN_TEST_SCHEDULE-}" ]; then
    # What has been asked of devices that find nothing measured, and keep it nowhere, over what those ask that find it all.
    asked() { awk '{ sum += $(NF - 1) } END { print sum }' "$own/enqueued"; }
    measuring() { # REPLICAS
        local cache warm=0
        for cache in "$own/equal-gpus" "$own/equal-gpus" /dev/null/none; do
            warm=$(asked 2>/dev/null)
            rm -f "$own/enqueued"
            capture env HPC_TRAIN_TEST_ACCOUNT="$own/enqueued" XDG_CACHE_HOME="$cache" "$train" bench \
                --model mnist-convnet --batch-size $((2 * $1)) --steps 3 --device cuda --replicas "$1" --bucket-bytes 50000
        done
        echo $(($(asked) - warm))
    }
    alone=$(measuring 1) pair=$(measuring 2)
    ok $((alone < 100 || pair > alone * 3 / 2)) "what one of two equal GPUs has measured the other one finds ($alone, $pair)"
fi
capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device cuda --replicas 2 --bucket-bytes 50000 --summary-json "$own/bench.two.json"
is "$status" 0 "bench" || diag "$err"
capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device cuda --replicas 2 --profile
is "$status" 64 "a profile is of one"
capture "$train" fit "${steps[@]}" --batch-size 8 --device cuda --replicas 4
is "$status" 78 "more replicas than devices are refused"
like "$err" "4 replicas need as many GPUs, and this task does not see so many: ask for more" "with what to ask for"
capture env -u HPC_TRAIN_TEST_NCCL "$train" fit "${steps[@]}" --batch-size 8 --device cuda --replicas 2
is "$status" 78 "without NCCL, too"
like "$err" "replicas on several GPUs need NCCL: replica 0: libnccl-missing.so" "with the reason"
if [ -n "${HPC_TRAIN_LONG-}" ]; then # half a minute of patience
    capture env HPC_TRAIN_TEST_FAILS=1 timeout 55 "$train" fit --model "$own/tiny.json" --resize 28x28 --data "$own/small" \
        --global-batch-size 4 --epochs 100 --device cuda --replicas 3 --bucket-bytes 50000
    is "$status" 70 "a GPU that fails ends all replicas"
    like "$err" "replica 1: cudaGraphLaunch: emulated CUDA error 700" "and the process says which"
fi
# A call that fails on one rank in the midst of what all take part in: none waits for what does not come.
# shellcheck disable=SC2016 # each rank expands
ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK
    [ "$OMPI_COMM_WORLD_RANK" != 1 ] || export HPC_TRAIN_TEST_REFUSES=$REFUSED
    exec "$@"' rank)
in_company() { # CALL:N
    capture env REFUSED="$1" timeout 40 "${ranks[@]}" "$train" fit --model "$own/norm.json" --resize 28x28 --data "$own/small" \
        --global-batch-size 4 --epochs 2 --verbose 0 --device cuda --strategy multi-worker-mirrored --bucket-bytes 50000
}
refused() { # CALL:N PATTERN
    in_company "$1"
    like "$status" '^(69|70)$' "$1 fails on rank 1: both end"
    like "$err" "$2" "and say what failed"
    like "$err" "rank 1( \(.*\))?: " "and whose"
}
in_company nothing:1 # and what is measured is known
is "$status" 0 "two ranks of which nothing fails" || diag "$err"
refused nccl:2 "rank 1: a collective: ncclAllGather: an emulated error"
refused cudaStreamWaitEvent:3 "rank 1: a collective: cudaStreamWaitEvent: emulated CUDA error 719"
refused launch:6 "(forward|backward) of layer [a-z]+: .*: emulated CUDA error 719"
refused cudaStreamEndCapture:2 "this step cannot be recorded \(HPC_TRAIN_RECORD=0 goes without\): cudaStreamEndCapture: "
unlike "$err" "another rank or replica could not" "who only heard of it lets the other one say why"

done_testing
