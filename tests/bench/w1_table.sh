#!/bin/bash
# w1_table.sh DATA [NODES...]: W1 (the MNIST CNN, 8 epochs, 64 pictures per worker, learning rate 0.2, steps per epoch =
# 60000 / global batch rounded down) through srun on the running sandbox, on 1 2 3 4 6 8 10 20 nodes, beside the published
# results. DATA is a folder with MNIST's files. All nodes of a sandbox share one machine's cores: the seconds say nothing
# about scaling, loss and accuracy do not depend on that. RECIPE has other options of `hpc-train fit` than the learning rate,
# such as "--optimizer adam --lr-scaling sqrt --warmup-epochs 1 --schedule cosine".
# shellcheck disable=SC2086 # several words
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
sandbox=$top/etc/sandbox/sandbox
folder=${HPC_TRAIN_SANDBOX:-$top/.sandbox}/shared/w1
[ $# -gt 0 ] || { echo "usage: w1_table.sh DATA [NODES...]" >&2; exit 64; }
data=$1
shift
[ $# -gt 0 ] || set -- 1 2 3 4 6 8 10 20

# Published: workers, seconds on GCP n1-standard-2, AWS m4.large, AWS c4.2xlarge, GCP V100, AWS V100; loss and accuracy of
# these, lowest and highest.
published() {
    case $1 in
    1) echo "393.8 381.4 112.3 24.0 27.3 .0024-.0047 .9988 .9995" ;;
    2) echo "422.2 750.0 158.7 159.9 131.9 .0093-.0156 .9958 .9968" ;;
    3) echo "285.4 667.0 140.5 119.1 112.6 .0127-.0291 .9911 .9966" ;;
    4) echo "209.6 563.4 110.2 94.3 94.7 .0369-.0397 .9881 .9890" ;;
    6) echo "153.3 418.4 84.3 83.2 66.3 .0496-.0545 .9838 .9845" ;;
    8) echo "121.6 335.3 65.3 75.4 68.6 .0596-.0761 .9774 .9823" ;;
    10) echo "101.4 272.9 55.6 - 64.3 .0710-.0849 .9747 .9789" ;;
    20) echo "- - - - 60.9 .1089 .9676 .9676" ;;
    *) echo "- - - - - - - -" ;;
    esac
}

value() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\).*/\1/p" "$folder/summary.json"; }

mkdir -p "$folder" && cp "$data"/*ubyte* "$folder/" || exit
chmod -R a+rwX "$folder"
trap 'rm -rf "$folder"' EXIT
cpus=$(nproc)
format='%-7s | %8s %7s %8s | %7s %7s %7s %7s %7s  %-11s %-11s %s\n'
printf "$format" workers seconds loss accuracy gcp-cpu m4 c4 gcp-gpu aws-gpu loss accuracy "within 0.002"
for nodes; do
    each=$((nodes >= cpus ? 1 : cpus / nodes)) # threads of a worker
    rm -f "$folder/summary.json"
    began=${EPOCHREALTIME/./}
    "$sandbox" run srun "-N$nodes" "-n$nodes" "-c$each" hpc-train fit --model mnist-cnn --data /shared/w1 --epochs 8 \
        --batch-size 64 ${RECIPE:---learning-rate 0.2} --steps-per-epoch $((60000 / (64 * nodes))) --seed "${SEED:-1}" \
        --verbose 0 --summary-json /shared/w1/summary.json || exit
    took=$(((${EPOCHREALTIME/./} - began) / 100000))
    read -r a b c d e losses low high < <(published "$nodes")
    range=$low
    [ "$low" = "$high" ] || range=$low-$high
    verdict=$(awk -v x="$(value accuracy)" -v low="$low" -v high="$high" 'BEGIN {
        if (low == "-") print "-"; else print (x >= low - 0.002 && x <= high + 0.002) ? "yes" : (x > high ? "above" : "below") }')
    printf "$format" "$nodes" "$((took / 10)).$((took % 10))" "$(printf %.4f "$(value loss)")" \
        "$(printf %.4f "$(value accuracy)")" "$a" "$b" "$c" "$d" "$e" "$losses" "$range" "$verdict"
done
