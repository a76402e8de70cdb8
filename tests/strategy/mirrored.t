#!/bin/bash
# mirrored.t: several replicas in a process, and on several ranks, give the losses and weights of one on the same global
# batch: with random layers, with synchronized BatchNormalization, with a short batch that leaves replicas without pictures.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
random=$top_srcdir/tests/strategy/random.json # RandomFlip, RandomRotation, RandomContrast and Dropout
few=("1 3" "2 2")
[ -z "${HPC_TRAIN_LONG-}" ] || few=("1 2" "1 3" "1 7" "2 2" "2 3" "3 2")
for model in "--model mnist-cnn --momentum 0.9" "--model $random" "--model $residual --sync-batch-norm"; do
    # shellcheck disable=SC2086 # several words
    reference $model
    for case in "${few[@]}"; do
        # shellcheck disable=SC2086
        same_as_one "${case% *}" $model --strategy mirrored --replicas "${case#* }"
    done
done
is "$(field many strategy) $(field many workers) $(field many replicas)" "mirrored ${few[-1]}" "the summary has strategy, ranks and replicas"

# ---- 256 pictures: 6 batches of 42, and 4, which 2 ranks of 3 replicas share as 1 1 0 and 1 1 0 ----
length=() steps=7
# shellcheck disable=SC2086
reference $model --validation-data "$work/pictures"
# shellcheck disable=SC2086
same_as_one 2 $model --validation-data "$work/pictures" --replicas 3
is "$(field many strategy)" mirrored "--replicas alone means mirrored"
differ=$(awk -v a="$(field one val_loss)" -v b="$(field many val_loss)" 'BEGIN { d = (a - b) / a; print (d * d < 1e-8 ? "no" : "by " d) }')
is "$differ" no "replicas evaluate their parts: the same loss as one rank"

# ---- a signal ----
length=(--steps-per-epoch 4 --epochs 100000) # the log is written after each epoch
train 1 stopped --model mnist-convnet --replicas 2 &
job=$! end=$((SECONDS + 100))
until [ -s "$work/stopped/metrics.jsonl" ] || [ $SECONDS -gt $end ]; do sleep 0.1; done
for pid in $(pgrep -f -- "--log-dir $work/stopped "); do # timeout, too
    case $(cat "/proc/$pid/comm") in hpc-train | lt-hpc-train) kill -TERM "$pid" ;; esac
done
wait "$job"
is "$?" 143 "SIGTERM ends a run of replicas"
like "$(cat "$work/stopped.out")" "stopped by SIGTERM after step [0-9]+.*the weights so far are in" "after a step, with the weights saved"

# ---- what cannot be ----
length=(--steps-per-epoch 1)
train 1 none --model mnist-cnn --strategy multi-worker-mirrored --replicas 2
is "$?" 64 "replicas are refused where the strategy has none"
like "$(cat "$work/none.out")" "strategy multi-worker-mirrored has one replica on each rank, not 2: --replicas goes with mirrored" "the error names mirrored"
train 1 none --model mnist-cnn --replicas 43
is "$?" 64 "more replicas than pictures: an error"
like "$(cat "$work/none.out")" "a global batch of 42 cannot be shared among 43 replicas in each of 1 rank" "with both numbers"
done_testing
