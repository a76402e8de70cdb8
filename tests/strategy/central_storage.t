#!/bin/bash
# central_storage.t: replicas that read one set of weights give the losses and weights of one replica.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
random=$top_srcdir/tests/strategy/random.json # RandomFlip, RandomRotation, RandomContrast and Dropout
few=(2)
[ -z "${HPC_TRAIN_LONG-}" ] || few=(2 3 7)
for model in "--model mnist-cnn --momentum 0.9" "--model $random --optimizer adam" "--model $residual --sync-batch-norm"; do
    # shellcheck disable=SC2086 # several words
    reference $model
    for replicas in "${few[@]}"; do
        # shellcheck disable=SC2086
        same_as_one 1 $model --strategy central-storage --replicas "$replicas"
    done
done
is "$(field many strategy) $(field many replicas)" "central-storage ${few[-1]}" "the summary has strategy and replicas"

# ---- 256 pictures: 6 batches of 42, and 4, of which one of 5 replicas has none ----
length=() steps=7
# shellcheck disable=SC2086
reference $model
# shellcheck disable=SC2086
same_as_one 1 $model --strategy central-storage --replicas 5

# ---- ranks ----
train 2 none --model mnist-cnn --strategy central-storage --replicas 2
is "$?" 64 "several ranks are refused"
like "$(cat "$work/none.out")" "strategy central-storage keeps the weights in one process, and there are 2 ranks: start one .* or take mirrored" "the error says what to do"
done_testing
