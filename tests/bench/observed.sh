#!/bin/bash
# observed.sh [PAIRS [SECONDS]]: what it costs W1's step that a run is observed: paired runs of one rank without and with all of
# --log-dir (history, event files, run.json, pace.jsonl, status.json), --metrics-file, early stopping and a plateau; with
# HPC_TRAIN_HISTOGRAMS=1 also --histogram-every 1. Prints the median step of each run; the ratio as a median over the pairs and of
# the fastest runs, as a shared machine has two speeds; and, where perf can count them, the same for instructions.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
train=${top_builddir:-$top/build}/hpc-train pairs=${1:-10} seconds=${2:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
value() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\).*/\1/p" "$work/s.json"; }
counter=()
if perf stat -e instructions:u true 2>/dev/null; then counter=(perf stat '-x,' -e instructions:u -o "$work/perf"); fi
# one OPTION...: "MS MILLIONS-OF-INSTRUCTIONS-A-STEP"
one() {
    rm -rf "$work/log"
    "${counter[@]}" "$train" fit --model mnist-cnn --data synthetic:60000 --batch-size 64 --strategy multi-worker-mirrored --verbose 0 --epochs 4 \
        --steps-per-epoch "$steps" --learning-rate 1e-4 --summary-json "$work/s.json" "$@" >/dev/null || exit
    echo "$(value step_ms) $(awk -F, -v steps=$((4 * steps)) '/instructions/ { n = $1 / steps / 1e6 } END { print n + 0 }' "$work/perf" 2>/dev/null || echo 0)"
}
steps=20
read -r ms _ < <(one)
steps=$(awk -v ms="$ms" -v s="$seconds" 'BEGIN { print int(1000 * s / ms / 4) + 5 }')
everything=(--log-dir "$work/log" --metrics-file "$work/m.prom" --early-stopping loss:patience=99 --reduce-lr-on-plateau loss:patience=99)
[ -z "${HPC_TRAIN_HISTOGRAMS-}" ] || everything+=(--histogram-every 1)
for ((i = 0; i < pairs; i++)); do
    if ((i % 2)); then without=$(one) with=$(one "${everything[@]}"); else with=$(one "${everything[@]}") without=$(one); fi
    echo "$without $with"
done | awk '{ printf "without %.3f ms, %.2f million instructions; with %.3f ms, %.2f\n", $1, $2, $3, $4; fflush(); a[NR] = $3 / $1
    if (NR == 1 || $1 < least) least = $1; if (NR == 1 || $3 < least_with) least_with = $3; b[NR] = $2 > 0 ? $4 / $2 : 0 }
    function median(v, n,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    END { printf "%d pairs: step %+.2f %% in the median, %+.2f %% of the fastest", NR, 100 * (median(a, NR) - 1), 100 * (least_with / least - 1)
        if (b[1] > 0) printf ", instructions %+.2f %%", 100 * (median(b, NR) - 1)
        print "" }'
