#!/bin/bash
# strong_scaling.sh DATA [NODES...]: W1 with a global batch of 64 on one node and on NODES (20) of the running sandbox, the same
# seed: what each epoch's loss and accuracy are, and how far the losses of steps are apart. DATA is a folder with MNIST's
# files. EPOCHS (8), RATE (learning rate, 0.01) and OPTIONS of `hpc-train fit` say what is trained.
# shellcheck disable=SC2086 # several words
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${HPC_TRAIN_SANDBOX:-$top/.sandbox}/shared/strong
epochs=${EPOCHS:-8}
[ $# -gt 0 ] || { echo "usage: strong_scaling.sh DATA [NODES...]" >&2; exit 64; }
data=$1
shift
[ $# -gt 0 ] || set -- 20

mkdir -p "$folder" && cp "$data"/*ubyte* "$folder/" || exit
chmod -R a+rwX "$folder"
trap 'rm -rf "$folder"' EXIT

run() { # NODES
    "$top/etc/sandbox/sandbox" run srun "-N$1" "-n$1" hpc-train fit --model mnist-cnn --data /shared/strong --epochs "$epochs" \
        --global-batch-size 64 --learning-rate "${RATE:-0.01}" --seed 1 --verbose 2 --log-dir "/shared/strong/$1" ${OPTIONS-} \
        >"$folder/$1.out" || exit
}

results() { sed -n 's/.* accuracy: \([0-9.]*\) - loss: \([0-9.]*\).*/\2 \1/p' "$folder/$1.out"; }

# Largest relative difference of losses of the same steps, over the first 100, 1000 and all.
apart() {
    paste -d' ' "$folder/1/metrics.jsonl" "$folder/$1/metrics.jsonl" | tr -d '{},":' | awk '
        { a = $6; b = $14; if ($2 != $10 || $4 != $12 || a + 0 == 0) { print "the steps differ"; bad = 1; exit }
          d = (a - b) / a; d = d < 0 ? -d : d; worst = d > worst ? d : worst
          if (NR == 100 || NR == 1000) printf "%.1e in %d steps, ", worst, NR }
        END { if (!bad) printf "%.1e in all %d\n", worst, NR }'
}

run 1
for nodes; do
    run "$nodes"
    printf 'epoch | 1 node: loss, accuracy | %s nodes\n' "$nodes"
    paste -d' ' <(results 1) <(results "$nodes") | awk '{ printf "%5d | %s %s | %s %s\n", NR, $1, $2, $3, $4 }'
    echo "losses of steps apart, at most: $(apart "$nodes")"
done
