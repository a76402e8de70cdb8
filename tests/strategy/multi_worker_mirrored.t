#!/bin/bash
# multi_worker_mirrored.t: data parallelism gives the losses and weights of one rank on the same global batch.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
strategy=(--strategy multi-worker-mirrored)
few=(2 3)
[ -z "${HPC_TRAIN_LONG-}" ] || few=(2 3 4 7)
for model in "--model mnist-cnn" "--model mnist-convnet" "--model $residual --sync-batch-norm"; do
    # shellcheck disable=SC2086 # several words
    reference $model
    for ranks in "${few[@]}"; do
        # shellcheck disable=SC2086
        same_as_one "$ranks" $model "${strategy[@]}"
    done
done

# ---- a name that there is not ----
train 2 none --model mnist-cnn --strategy mirror
is "$?" 64 "an unknown strategy is refused"
like "$(cat "$work/none.out")" "strategy 'mirror' is unknown; there are: auto, .*multi-worker-mirrored" "with the names that there are"
done_testing
