#!/bin/bash
# hybrid.t: a model of which each rank computes a part gives the losses and weights of one rank on the same global batch, in
# every form, and sends next to nothing, or, where only the last layers are in parts, what the others take.

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
export HPC_TRAIN_SUMS=tcp # over connections of our own, as between nodes without a fabric; elsewhere here over MPI
compare "--model mnist-cnn" --hybrid-form rows
unset HPC_TRAIN_SUMS
# By rows: the 128 sums of the large Dense for each sample, and the piggybacked values; by columns: the 10 of the one behind it; by columns,
# and by rows where ranks have cells of the picture instead of channels, the gradients of the convolution, 288 + 32. fp32.
is "$(field many bytes_sent_per_step)" $((4 * (global_batch * 128 + 4 + 288 + 32))) "by rows: outputs of the large Dense are sent, and little else"
is "$(field many strategy)" hybrid "the summary names the strategy"
[ -n "${HPC_TRAIN_LONG-}" ] || few=(3)
compare "--model mnist-cnn" --hybrid-form columns
is "$(field many bytes_sent_per_step)" $((4 * (global_batch * 10 + 4 + 288 + 32))) "by columns: fewer bytes"

reference --model mnist-convnet --momentum 0.9
compare "--model mnist-convnet --momentum 0.9"

# Convolution, batch normalization, addition, pooling before a Dense.
reference --model "$residual" --optimizer adam --sync-batch-norm
compare "--model $residual --optimizer adam --sync-batch-norm"

# ---- the last layers in parts, behind others that are data parallel ----
[ -n "${HPC_TRAIN_LONG-}" ] || few=(2 3)
reference --model "$wide" --optimizer adam --sync-batch-norm
export HPC_TRAIN_SUMS=tcp
compare "--model $wide --optimizer adam --sync-batch-norm" --hybrid-form back
unset HPC_TRAIN_SUMS
gradients=$((4 * $("$top_builddir/hpc-train" summary --model "$wide" | sed -n 's/^Trainable params: \([0-9,]*\).*/\1/p' | tr -d ,)))
ok "$((!(2 * gradients > 3 * $(field many bytes_sent_per_step))))" "it sends $(field many bytes_sent_per_step) bytes instead of $gradients of gradients"
# Statistics that are not synchronized are of each rank's own pictures, as with multi-worker-mirrored; also where some have none.
for ranks in 3 7; do
    train $ranks one --model "$wide" --strategy multi-worker-mirrored "${from[@]}"
    ok $? "$ranks ranks of multi-worker-mirrored, moving statistics of local batches" || diag "$(cat "$work/one.out")"
    same_as_one $ranks --model "$wide" "${strategy[@]}" --hybrid-form back
    steps=7 length=()
done
[ -n "${HPC_TRAIN_LONG-}" ] && steps=100 || steps=12
length=(--steps-per-epoch "$steps")
reference --model "$wide" --sync-batch-norm --gradient-accumulation 3
same_as_one 2 --model "$wide" --sync-batch-norm --gradient-accumulation 3 "${strategy[@]}" --hybrid-form back

# ---- optimizers that need norms of whole parameters, of which ranks have parts ----
[ -n "${HPC_TRAIN_LONG-}" ] || few=(3)
for optimizer in "lars --learning-rate 0.05 --weight-decay 0.001" "lamb --weight-decay 0.01" "sgd --clip-norm 0.05" \
    "sgd --global-clip-norm 0.05"; do
    # shellcheck disable=SC2086 # several words
    reference --model mnist-convnet --optimizer $optimizer
    compare "--model mnist-convnet --optimizer $optimizer"
done

# ---- a short last batch, and evaluation: 256 pictures in batches of 42, the last of 4 ----
steps=7 length=()
epoch=(--validation-data "$work/pictures")
reference --model mnist-cnn "${epoch[@]}"
same_as_one 3 --model mnist-cnn "${epoch[@]}" "${strategy[@]}"
differs=$(paste -d' ' <(field one val_loss) <(field many val_loss) | awk '{ d = ($1 - $2) / $1; if ($1 > 0) print d < 0 ? -d : d }')
ok "$(awk -v d="$differs" 'BEGIN { print !(d ~ /^[0-9]/ && d <= 1e-4) }')" "validation gives one rank's loss (to $differs)"

# ---- a stop signal to one rank ends all after the same step ----
stops_together

# ---- what cannot be ----
steps=1 length=(--steps-per-epoch 1)
train 9 none --model mnist-convnet "${strategy[@]}" --hybrid-form columns --global-batch-size 4200
is "$?" 78 "a model without a Dense that is worth it is refused"
like "$(cat "$work/none.out")" "strategy hybrid: model mnist-convnet has no Dense that 9 parts could split by columns" "the error says why"
train 2 none --model mnist-cnn "${strategy[@]}" --hybrid-form diagonal
is "$?" 64 "an unknown form is refused"
like "$(cat "$work/none.out")" "hybrid-form is 'diagonal', it must be auto, rows, columns or back" "the error lists the forms"
HPC_TRAIN_SUMS=ucx train 2 none --model mnist-cnn "${strategy[@]}"
is "$?" 78 "a way of sums that there is not is refused"
like "$(cat "$work/none.out")" "HPC_TRAIN_SUMS is 'ucx', it must be auto, mpi or tcp" "the error lists the values"
done_testing
