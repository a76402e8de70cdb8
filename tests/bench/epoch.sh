#!/bin/bash
# epoch.sh DATA [BUILD]: seconds of one W1 epoch (batch 64, all cores) over its floor, which is the step's FLOPs at the rate of
# dnnl_sgemm at 2048^3, measured by BUILD/tests/bench/step (make bench-nn) just before and after. Run it on a quiet machine.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { echo "usage: epoch.sh DATA [BUILD]" >&2; exit 64; }
data=$1 build=${2:-$top/build}
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT

floor() { "$build/tests/bench/step" --model mnist-cnn --batch 64 | sed -n 's/^floor *\([0-9.]*\) ms.*/\1/p'; }

before=$(floor)
"$build/hpc-train" fit --model mnist-cnn --data "$data" --epochs 4 --verbose 2 --summary-json "$summary" || exit
after=$(floor)
seconds=$(sed -n '/"epoch_seconds"/,/]/p' "$summary" | grep -oE '[0-9]+\.[0-9]+' | sort -n | head -n1)
awk -v s="$seconds" -v before="$before" -v after="$after" 'BEGIN {
    if (before == "" || after == "") exit 1
    floor = (before < after ? before : after) * 60000 / 64 / 1000
    printf "epoch %.2f s (best of 4), floor %.2f s (%s and %s ms a step), ratio %.2f\n", s, floor, before, after, s / floor
}'
