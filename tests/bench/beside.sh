#!/bin/bash
# beside.sh TREE [PAIRS [RATE]]: W1 (mnist-cnn, 64 pictures a rank) on two nodes, by multi-worker-mirrored and by parameter
# servers, of this tree and of another one of it (a clone of an earlier commit, built), in paired runs, in turns of order; the
# median of the pairs' ratios. Each has a sandbox of its own, with links of RATE (10gbit).
here=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "${1-}/quickstart" ] || { echo "usage: beside.sh TREE [PAIRS [RATE]]" >&2; exit 64; }
there=$(cd "$1" && pwd) pairs=${2:-9} link=${3:-10gbit}
out=$(mktemp -d) || exit 74
trap 'for tree in "$here" "$there"; do "$tree/quickstart" down >/dev/null; done; rm -rf "$out"' EXIT
unset HPC_TRAIN_SANDBOX
STEPS=${STEPS:-300}
. "$here/tests/bench/speedup_lib.sh"
for tree in "$there" "$here"; do
    "$tree/quickstart" down >/dev/null
    "$tree/quickstart" up 2 --rate "$link" >/dev/null || exit
done

w1=(--model mnist-cnn --batch-size 64)
mirrored() { rate 2 --strategy multi-worker-mirrored "${w1[@]}"; }
servers() { # one, and one worker
    rm -f "$home/fit.json"
    "$top/quickstart" run timeout 600 srun --hpc-train --hpc-train-roles=ps:1,worker:1 --chdir=/shared/home/user -N2 -n2 \
        env OMP_NUM_THREADS=1 hpc-train fit --strategy parameter-server --data "synthetic:$((64 * steps))" \
        --steps-per-epoch "$steps" --epochs 1 --verbose 0 --summary-json fit.json "${w1[@]}" >"$home/out" 2>"$home/err" ||
        { tail -n 5 "$home/err" >&2; echo -; return; }
    per_second "$home/fit.json"
}
one() { # TREE HOW
    top=$1 home=$1/.sandbox/shared/home/user
    "$2"
}
compare() { # HOW
    local pair old new
    : >"$out/pairs"
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2)); then
            new=$(one "$here" "$1") old=$(one "$there" "$1")
        else
            old=$(one "$there" "$1") new=$(one "$here" "$1")
        fi
        echo "$old $new $(divide "$new" "$old" %.4f)" >>"$out/pairs"
    done
    printf '%-12s there %8.1f images/s, here %8.1f; here/there %s (%s)\n' "$1" "$(awk '{ print $1 }' "$out/pairs" | median)" \
        "$(awk '{ print $2 }' "$out/pairs" | median)" "$(awk '{ print $3 }' "$out/pairs" | median)" "$(awk '{ print $3 }' "$out/pairs" | span)"
}

echo "$(described) $pairs pairs, links of $link."
compare mirrored
compare servers
