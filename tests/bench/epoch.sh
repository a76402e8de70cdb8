#!/bin/bash
# epoch.sh DATA [MODEL [BATCH [BUILD]]]: seconds of one epoch of MNIST (default mnist-cnn, batch 64) over its floor: the step's
# FLOPs at the rate of a large matrix product, or its bytes at the rate of copying, the larger, which
# `hpc-train bench --profile` measures just before and after. Run it on a quiet machine; with OMP_NUM_THREADS=1 under
# `taskset -c 0` for one core.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo "usage: epoch.sh DATA [MODEL [BATCH [BUILD]]]" >&2; exit 64; }
data=$1 model=${2:-mnist-cnn} batch=${3:-64} build=${4:-$top/build}
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT

floor() { "$build/hpc-train" bench --model "$model" --batch-size "$batch" --profile | sed -n 's/^floor *\([0-9.]*\) ms.*/\1/p'; }

before=$(floor)
"$build/hpc-train" fit --model "$model" --batch-size "$batch" --data "$data" --epochs 4 --verbose 2 --summary-json "$summary" || exit
after=$(floor)
seconds=$(sed -n '/"epoch_seconds"/,/]/p' "$summary" | grep -oE '[0-9]+\.[0-9]+' | sort -n | head -n1)
awk -v s="$seconds" -v before="$before" -v after="$after" -v batch="$batch" 'BEGIN {
    if (before == "" || after == "") exit 1
    floor = (before < after ? before : after) * 60000 / batch / 1000
    printf "epoch %.2f s (best of 4), floor %.2f s (%s and %s ms a step), ratio %.2f\n", s, floor, before, after, s / floor
}'
