#!/bin/bash
# multi_worker_mirrored.t: data parallelism gives the losses and weights of one rank on the same global batch.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
strategy=(--strategy multi-worker-mirrored)
few=(2 3) given=("${buckets[@]}")
[ -z "${HPC_TRAIN_LONG-}" ] || few=(2 3 4 7)
for model in "--model mnist-cnn" "--model mnist-convnet" "--model $residual --sync-batch-norm"; do
    # The size of a bucket by the network: for one of the models.
    if [ "$model" = "--model mnist-convnet" ]; then buckets=(); else buckets=("${given[@]}"); fi
    # shellcheck disable=SC2086 # several words
    reference $model
    for ranks in "${few[@]}"; do
        # shellcheck disable=SC2086
        same_as_one "$ranks" $model "${strategy[@]}"
    done
    [ -n "${HPC_TRAIN_LONG-}" ] || few=(3)
done

# ---- cut as it may be, and on its way as it may be ----
# bytes_are BYTES: of the run before, in each step.
bytes_are() { is "$(field many bytes_sent_per_step)" "$1" "$1 bytes a step"; }
reference --model mnist-cnn
train 3 whole --model mnist-cnn "${from[@]}" "${strategy[@]}" --bucket-bytes 1000000000
ok $? "3 ranks, one bucket" || diag "$(cat "$work/whole.out")"
same_as_one 3 --model mnist-cnn "${strategy[@]}" --bucket-bytes 400000
bytes_are $((4 * (2770640 + 6)))
is "$(cmp "$work/whole.safetensors" "$work/many.safetensors" 2>&1)" "" "28 buckets have the weights of one, bit by bit"
# Over connections of our own, as between nodes without a fast fabric.
HPC_TRAIN_SUMS=tcp train 3 many --model mnist-cnn "${from[@]}" "${strategy[@]}" --bucket-bytes 400000
ok $? "3 ranks over TCP" || diag "$(cat "$work/many.out")"
is "$(cmp "$work/whole.safetensors" "$work/many.safetensors" 2>&1)" "" "with identical weights"
# Nothing travels while backward computes what is accumulated yet.
reference --model mnist-convnet --gradient-accumulation 3
same_as_one 3 --model mnist-convnet --gradient-accumulation 3 "${strategy[@]}" --bucket-bytes 4096
reference --model mnist-cnn
for wire in bf16 fp16; do
    train 3 $wire --model mnist-cnn "${from[@]}" "${strategy[@]}" --wire $wire --allow-lossy
    ok $? "3 ranks, $wire" || diag "$(cat "$work/$wire.out")"
    is "$(field $wire bytes_sent_per_step)" "$((2 * 2770640 + 4 * 6))" "half the bytes, but the sums"
    losses=$(losses_differ one $wire)
    # In bf16 a gradient is rounded by up to 2^-9; after about 70 steps that turns a ReLU, in fp16 some later.
    ok "$(awk -v d="$losses" -v most="${HPC_TRAIN_LONG:+1e-2}" 'BEGIN { print !(d != "" && d + 0 <= (most == "" ? 1e-4 : most + 0)) }')" "the losses are near one rank's (to ${losses:-?})"
done
for pair in "whole bf16" "whole fp16" "bf16 fp16"; do
    ! cmp -s "$work/${pair% *}.safetensors" "$work/${pair#* }.safetensors"
    ok $? "the weights of $pair differ: something was rounded"
done
train 2 many --model mnist-cnn "${strategy[@]}" --wire bf16
is "$?" 64 "a wire that rounds is refused"
like "$(cat "$work/many.out")" "--wire bf16 rounds gradients, which changes the results: give --allow-lossy" "without --allow-lossy"

# ---- where the time went ----
train 2 many --model mnist-convnet "${strategy[@]}" --bucket-bytes 1024 --steps-per-epoch 12 --timeline "$work/timeline.json"
ok $? "with a timeline"
if command -v python3 >/dev/null; then
    out=$(python3 "$top_srcdir/tests/strategy/timeline.py" "$work/timeline.json" 2 11 2>&1)
    ok $? "it is a Chrome trace of all parts of steps 2 to 12; reductions begin, and some end, before backward ends" || diag "$out"
fi
train 1 many --model mnist-convnet --timeline "$work/none/timeline.json"
is "$?" 74 "a timeline that cannot be written is refused"
like "$(cat "$work/many.out")" "timeline: $work/none/timeline.json: making a file in its folder failed: No such file" "the error names the file"

# ---- a name that there is not ----
train 2 none --model mnist-cnn --strategy mirror
is "$?" 64 "an unknown strategy is refused"
like "$(cat "$work/none.out")" "strategy 'mirror' is unknown .did you mean mirrored\?.; there are: auto, .*multi-worker-mirrored" "the error lists the names"
done_testing
