#!/bin/bash
# checkpoint.sh [PAIRS [SECONDS [MODEL/RANKS/STRATEGY...]]]: what checkpoints cost a training step: W1's network and ResNet50V2 at
# 64x64, on one rank and where each of two ranks writes its own part, paired runs without and with --checkpoint-every 10s, the most
# often that the default saves. Prints the median step and the images per second of each run, their ratios as medians over the pairs,
# and the bytes written.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
train=${top_builddir:-$top/build}/hpc-train pairs=${1:-5} seconds=${2:-40}
cases=("${@:3}")
[ ${#cases[@]} -gt 0 ] || cases=({mnist-cnn,resnet50v2}/1/multi-worker-mirrored mnist-cnn/2/hybrid resnet50v2/2/pipeline)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
value() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\).*/\1/p" "$work/s.json"; }
# one NAME STEPS OPTION...: "MS IMAGES/S BYTES"
one() {
    rm -rf "$work/ckpt"
    "${ranks[@]}" "$train" fit --strategy "$strategy" --verbose 0 --epochs 1 --steps-per-epoch "$steps" --learning-rate 1e-4 --summary-json "$work/s.json" \
        "${model[@]}" "$@" >/dev/null || exit
    echo "$(value step_ms) $(value images_per_second) $(du -sb "$work/ckpt" 2>/dev/null | cut -f 1)"
}
for name in "${cases[@]}"; do
    strategy=${name##*/} ranks=()
    [[ $name == */1/* ]] || ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$(cut -d / -f 2 <<<"$name")")
    model=(--model mnist-cnn --data synthetic:60000 --global-batch-size 64)
    [[ $name == mnist-cnn/* ]] || model=(--model resnet50v2 --classes 10 --resize 64x64 --data synthetic:1000 --global-batch-size 16)
    steps=20
    read -r ms _ < <(one)
    steps=$(awk -v ms="$ms" -v s="$seconds" 'BEGIN { print int(1000 * s / ms) + 5 }')
    for ((i = 0; i < pairs; i++)); do
        without=$(one) with=$(one --checkpoint-dir "$work/ckpt" --checkpoint-every 10s)
        echo "$name $without $with"
    done
done | awk '{ printf "%s: without %.2f ms %.1f images/s, with %.2f ms %.1f images/s, %.1f MB on disk\n", $1, $2, $3, $4, $5, $6 / 1e6; fflush() }
    { n = ++count[$1]; a[$1, n] = $4 / $2; b[$1, n] = $3 / $5 }
    function median(list, name, n,    i, j, t, v) {
        for (i = 1; i <= n; i++) v[i] = list[name, i]
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    END { for (name in count) printf "%s: median of %d pairs: step %+.2f %%, time per image %+.2f %%\n", name, count[name],
        100 * (median(a, name, count[name]) - 1), 100 * (median(b, name, count[name]) - 1) }'
