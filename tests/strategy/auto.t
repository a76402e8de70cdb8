#!/bin/bash
# auto.t: the strategy that is chosen by trials trains as one rank does, from the state before the trials; the choice is said.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
for options in "--model mnist-cnn --optimizer adam" "--model $residual --sync-batch-norm --momentum 0.9"; do
    # shellcheck disable=SC2086 # several words
    reference $options
    # shellcheck disable=SC2086
    same_as_one 2 $options
done
like "$(field many strategy)" '^(multi-worker-mirrored|hybrid)$' "the summary has what was chosen"

train 2 said --model mnist-convnet --verbose 2
like "$(cat "$work/said.out")" "strategy [a-z-]+.*: [0-9.]+ ms a step, predicted [0-9.]+; .*; 2 ranks are (faster than one|SLOWER than one: give it fewer) \([0-9.]+ times\); [0-9]+( or more)? would pay off" \
    "one line says what was chosen, how fast it was and should be, what the ranks gain, and how many would"
is "$(grep -c "^strategy" "$work/said.out")" 1 "once"
for way in multi-worker-mirrored "hybrid \(rows\)" "hybrid \(columns\)"; do
    like "$(cat "$work/said.out")" "strategy .*$way" "$way was a candidate"
done
unlike "$(cat "$work/said.out")" "local-sgd|bf16|powersgd" "what changes the results is none"

train 2 lossy --model mnist-convnet --verbose 2 --allow-lossy
for way in local-sgd "multi-worker-mirrored \(bf16\)" "multi-worker-mirrored \(powersgd:4\)"; do
    like "$(cat "$work/lossy.out")" "strategy .*$way" "with --allow-lossy $way is one"
done

train 2 own --model "$wide" --verbose 2
like "$(cat "$work/own.out")" "hybrid \\(back\\)" "the last layers in parts are one, also where each rank normalizes by its own pictures"
train 2 named --model mnist-convnet --verbose 2 --strategy multi-worker-mirrored
unlike "$(cat "$work/named.out")" "strategy [a-z-]+:" "a strategy that was named is not tried"
is "$(field named strategy)" multi-worker-mirrored "but taken"
train 1 alone --model mnist-convnet --verbose 2 --strategy auto
unlike "$(cat "$work/alone.out")" "strategy [a-z-]+:" "one rank has nothing to choose"
done_testing
