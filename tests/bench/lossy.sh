#!/bin/bash
# lossy.sh HPC-TRAIN DATA [RANKS]: what each lossy way costs in accuracy: W1 (mnist-cnn, 8 epochs, batch 64 per rank) exact and with
# one setting of each, on ranks of one thread each. One line each: final loss and training accuracy, bytes of a step, seconds.
# Timings mean something on an idle machine alone.
set -u
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0"; exit 64; }
program=$1 data=$2 ranks=${3:-2}
work=$(mktemp -d) || exit 74
trap 'rm -rf "$work"' EXIT
field() { sed -n "s/.*\"$1\": *\([^,}]*\).*/\1/p" "$work/summary.json" | head -n 1; }
printf '%-52s %8s %8s %10s %8s\n' way loss accuracy bytes/step seconds
for way in "--strategy multi-worker-mirrored" "--allow-lossy --compress powersgd:4" "--allow-lossy --compress topk:0.01" \
    "--allow-lossy --strategy local-sgd"; do
    # shellcheck disable=SC2086 # several words
    OMP_NUM_THREADS=1 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "$program" fit --model mnist-cnn \
        --data "$data" --epochs 8 --batch-size 64 --verbose 0 --summary-json "$work/summary.json" $way || exit
    printf '%-52s %8.4f %8.4f %10d %8.1f\n' "$way" "$(field loss)" "$(field accuracy)" "$(field bytes_sent_per_step)" "$(field train_seconds)"
done
