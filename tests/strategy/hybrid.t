#!/bin/bash
# hybrid.t: a model of which each rank computes a part gives the losses and weights of one rank on the same global batch, in
# both forms, and sends next to nothing.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
strategy=(--strategy hybrid)
few=(2 3)
[ -z "${HPC_TRAIN_LONG-}" ] || few=(2 3 4 7)

# compare MODEL-OPTIONS OPTION…: for each number of ranks.
compare() {
    local ranks model=$1
    shift
    for ranks in "${few[@]}"; do
        # shellcheck disable=SC2086 # several words
        same_as_one "$ranks" $model "${strategy[@]}" "$@"
    done
}

reference --model mnist-cnn
compare "--model mnist-cnn" --hybrid-form rows
# By rows: the 128 sums of the large Dense for each sample, and the riders; by columns: the 10 of the one behind it, and the
# gradients of the convolution, 288 + 32. fp32.
train 2 rows --model mnist-cnn "${strategy[@]}" --hybrid-form rows
is "$(field rows bytes_sent_per_step)" $((4 * (global_batch * 128 + 4))) "by rows the large Dense's outputs travel, and nothing else"
is "$(field rows strategy)" hybrid "the summary names the strategy"
compare "--model mnist-cnn" --hybrid-form columns
is "$(field many bytes_sent_per_step)" $((4 * (global_batch * 10 + 4 + 288 + 32))) "by columns less"

reference --model mnist-convnet --momentum 0.9
compare "--model mnist-convnet --momentum 0.9"

# Convolution, batch normalization, addition, pooling before a Dense.
reference --model "$residual" --optimizer adam
compare "--model $residual --optimizer adam"

# ---- what cannot be ----
train 2 none --model mnist-cnn "${strategy[@]}" --hybrid-form diagonal
is "$?" 64 "an unknown form is refused"
like "$(cat "$work/none.out")" "hybrid-form is 'diagonal', it must be auto, rows or columns" "with the forms that there are"
train 2 none --model mnist-cnn "${strategy[@]}" --optimizer lars
is "$?" 78 "an optimizer that needs whole parameters is refused"
like "$(cat "$work/none.out")" "strategy hybrid: lars needs the norms of whole parameters" "by name"
done_testing
