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
like "$(cat "$work/said.out")" "strategy [a-z-]+.*: [0-9.]+ ms a step.*; 2 ranks are (faster than one|SLOWER than one: give it fewer) \([0-9.]+ times\)" \
    "one line says what was chosen, and what the ranks gain"
is "$(grep -c "^strategy" "$work/said.out")" 1 "once"
train 2 own --model "$residual" --verbose 2
unlike "$(cat "$work/own.out")" "hybrid" "where each rank normalizes by its own pictures, what would change that is no candidate"
train 2 named --model mnist-convnet --verbose 2 --strategy multi-worker-mirrored
unlike "$(cat "$work/named.out")" "strategy [a-z-]+:" "a strategy that was named is not tried"
is "$(field named strategy)" multi-worker-mirrored "but taken"
train 1 alone --model mnist-convnet --verbose 2 --strategy auto
unlike "$(cat "$work/alone.out")" "strategy [a-z-]+:" "one rank has nothing to choose"
done_testing
