#!/bin/bash
# tcp.sh [PAIRS [RATE]]: multi-worker-mirrored on two nodes over TCP beside MPI: steps of mnist-cnn (W1, 64 pictures a rank) and
# resnet50v2 (224x224, BATCH pictures a rank, default 4) in paired runs, in turns of order; the median of the pairs' ratios. Then
# how long 20 ranks take to join, where `make tests/unit/agent/comm/reduce_ranks` has been run. On a sandbox with links of RATE (10gbit).
. "$(dirname "$0")/speedup_lib.sh"
pairs=${1:-9} link=${2:-10gbit} batch=${BATCH:-4}
out=$(mktemp -d) || exit 74
cluster 2 "$link"
trap '"$top/quickstart" down >/dev/null; rm -rf "$out"' EXIT

one() { rate 2 --strategy multi-worker-mirrored --comm "$1" "${model[@]}"; } # COMM
compare() { # STEPS OPTION…
    local pair mpi tcp
    steps=$1 model=("${@:2}")
    : >"$out/pairs"
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2)); then tcp=$(one tcp) mpi=$(one mpi); else mpi=$(one mpi) tcp=$(one tcp); fi
        echo "$mpi $tcp $(divide "$tcp" "$mpi" %.4f)" >>"$out/pairs"
    done
    printf '%-28s mpi %8.1f images/s, tcp %8.1f; tcp/mpi %s (%s)\n' "${model[1]}" "$(awk '{ print $1 }' "$out/pairs" | median)" \
        "$(awk '{ print $2 }' "$out/pairs" | median)" "$(awk '{ print $3 }' "$out/pairs" | median)" \
        "$(awk '{ print $3 }' "$out/pairs" | span)"
}

echo "$(described) $pairs pairs, links of $link."
compare 100 --model mnist-cnn --batch-size 64
compare "${RESNET_STEPS:-5}" --model resnet50v2 --batch-size "$batch"

program=$top/build/tests/unit/agent/comm/reduce_ranks
[ -x "$program" ] || exit 0
cp "$program" "$home/reduce_ranks"
for comm in none pmix; do
    for ((pair = 0; pair < pairs; pair++)); do
        "$top/quickstart" run srun --hpc-train "--mpi=$comm" -N2 -n20 --overcommit --chdir=/shared/home/user ./reduce_ranks join
    done | sed -n 's/.*joined \([0-9.]*\) s.*/\1/p' >"$out/joins"
    echo "20 ranks on 2 nodes, --mpi=$comm: joined in $(median <"$out/joins") s ($(span <"$out/joins"))"
done
