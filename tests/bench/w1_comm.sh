#!/bin/bash
# w1_comm.sh DATA [NODES...]: W1 as in w1_table.sh, over MPI and over TCP, on 1 2 4 8 nodes of the running sandbox: loss and
# accuracy of the last epoch, and whether those of every step are the same to the digit. The seconds say nothing about scaling.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=${HPC_TRAIN_SANDBOX:-$top/.sandbox}/shared/w1
[ $# -gt 0 ] || { echo "usage: w1_comm.sh DATA [NODES...]" >&2; exit 64; }
data=$1
shift
[ $# -gt 0 ] || set -- 1 2 4 8
mkdir -p "$folder" && cp "$data"/*ubyte* "$folder/" && chmod -R a+rwX "$folder" || exit
trap 'rm -rf "$folder"' EXIT
value() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\).*/\1/p" "$folder/summary.json"; }
format='%-7s %-4s %8s %10s %10s  %s\n'
# shellcheck disable=SC2059
printf "$format" workers over seconds loss accuracy "steps that differ"
for nodes; do
    for comm in mpi tcp; do
        began=$SECONDS
        rm -rf "${folder:?}/$comm"
        "$top/etc/sandbox/sandbox" run srun --hpc-train "-N$nodes" "-n$nodes" hpc-train fit --model mnist-cnn --strategy multi-worker-mirrored \
            --comm $comm --data /shared/w1 --epochs "${EPOCHS:-8}" --batch-size 64 --learning-rate 0.2 --steps-per-epoch $((60000 / (64 * nodes))) \
            --seed "${SEED:-1}" --verbose 0 --log-dir /shared/w1/$comm --summary-json /shared/w1/summary.json || exit
        differ=
        [ $comm = mpi ] || differ="$(diff "$folder"/{mpi,tcp}/metrics.jsonl | grep -c '^<') of $(wc -l <"$folder/tcp/metrics.jsonl")"
        # shellcheck disable=SC2059
        printf "$format" "$nodes" $comm $((SECONDS - began)) "$(value loss)" "$(value accuracy)" "$differ"
    done
done
