#!/bin/bash
# standstill.t: a rank that lives, and does not go on, ends all of them after HPC_TRAIN_STANDSTILL_SECONDS, and is named.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
options=(--model mnist-convnet --strategy multi-worker-mirrored)

# A log that nobody reads: who opens it waits for ever.
mkdir "$work/log" && mkfifo "$work/log/metrics.jsonl"
stuck() { # SECONDS: as train, in that folder
    HPC_TRAIN_STANDSTILL_SECONDS=$1 limit 60 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 \
        "$hpc_train" fit --data "$work/pictures" --steps-per-epoch 2 "${options[@]}" --log-dir "$work/log" \
        >"$work/stuck.out" 2>&1
}
began=$(date +%s)
stuck 3
is "$?" 69 "a rank whose file system hangs ends both" || diag "$(cat "$work/stuck.out")"
took=$(($(date +%s) - began))
ok "$((took >= 3 ? 0 : 1))" "after 3 s ($took s with the start)"
like "$(cat "$work/stuck.out")" "rank 1 .*: rank 0 on .* was lost: it has made no progress for [0-9]+ s, and the others wait for it" "the error names the rank"
like "$(cat "$work/stuck.out")" "rank 0 .*: the other ranks have given up this one: it has made no progress" "that rank prints why"

stuck soon
is "$?" 78 "a number is wanted"
like "$(cat "$work/stuck.out")" "HPC_TRAIN_STANDSTILL_SECONDS='soon' is not a number of seconds from 0 to 86400" "the error says so"
done_testing
