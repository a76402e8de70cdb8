#!/bin/bash
# compress.t: compressed gradients under data parallelism: exact where nothing is left out, the bytes that they promise,
# losses near those of uncompressed gradients, and refusals.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
model=(--model mnist-convnet)
# ---- nothing is left out ----
reference "${model[@]}"
same_as_one 2 "${model[@]}" --allow-lossy --compress topk:1 --compress-warmup 0
# Every matrix of this model has fewer numbers than factors of rank 256.
same_as_one 2 "${model[@]}" --allow-lossy --compress powersgd:256 --compress-warmup 0
same_as_one 2 "${model[@]}" --allow-lossy --compress powersgd:1 --compress-warmup "$steps"

# ---- bytes: W1's kernels are 9 x 32, 128 x 21632 and 10 x 128, its biases 32 + 128 + 10, and 6 sums ride along ----
few=(--model mnist-cnn --steps-per-epoch 2 --allow-lossy --compress-warmup 0)
train 2 rank4 "${few[@]}" --compress powersgd:4
is "$(field rank4 bytes_sent_per_step)" $((4 * (4 * (9 + 32 + 128 + 21632 + 10 + 128) + 170 + 6))) "powersgd:4 sends what it should"
train 2 share "${few[@]}" --compress topk:0.001
is "$(field share bytes_sent_per_step)" $((8 * (1 + 2769 + 2) + 4 * (170 + 6))) "topk:0.001 too"
train 2 half "${few[@]}" --compress topk:0.001 --compress-warmup 1
plain=$((4 * (9 * 32 + 128 * 21632 + 10 * 128 + 16 + 170 + 6))) # a bias of 10 is padded to 16
between=$(((plain - 4 * 10 + 8 * (1 + 2769 + 2) + 4 * (170 + 6)) / 2))
ok "$(awk -v a="$(field half bytes_sent_per_step)" -v b="$between" 'BEGIN { print !(a > 0.999 * b && a < 1.001 * b) }')" "after one step without compression of two, half of either"

# ---- it trains: as far from the first loss as without ----
export steps_of_curve=60
curve() { # NAME OPTION…: the mean loss of the last ten steps
    steps=$steps_of_curve train 2 "$@" --learning-rate 0.05 --model mnist-cnn
    tail -n 10 "$work/$1/metrics.jsonl" | tr -d '{},":' | awk '{ sum += $6 } END { print sum / NR }'
}
plain=$(curve plain)
for how in powersgd:2 topk:0.02; do
    lossy=$(curve lossy --allow-lossy --compress "$how" --compress-warmup 5)
    ok "$(awk -v a="$lossy" -v b="$plain" 'BEGIN { print !(a > 0 && a < b + 0.1) }')" "$how: the loss after $steps_of_curve steps is $lossy, without it $plain"
done

# ---- refusals ----
refused() { # NAME PATTERN OPTION…
    local name=$1 pattern=$2
    shift 2
    train 2 refused "${model[@]}" "$@"
    is "$?" 64 "$name"
    like "$(cat "$work/refused.out")" "$pattern" "$name: the message"
}
refused "compression needs --allow-lossy" "give --allow-lossy as well" --compress powersgd:4
refused "an unknown way" "--compress: 'signs' is unknown; there are: powersgd:RANK, topk:SHARE" --allow-lossy --compress signs
refused "a rank of 0" "--compress: '0' is not a whole number from 1 to 256" --allow-lossy --compress powersgd:0
refused "a share above 1" "--compress: '1.5' is not a number" --allow-lossy --compress topk:1.5
refused "not with a narrow wire" "--compress and --wire" --allow-lossy --compress topk:0.1 --wire bf16
done_testing
