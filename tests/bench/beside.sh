#!/bin/bash
# beside.sh TREE [PAIRS [RATE]]: W1 (mnist-cnn, 64 pictures a rank, multi-worker-mirrored) and parameter servers on two nodes, of
# this tree and of another one of it (a clone of an earlier commit, built), in paired runs, in turns of order; the median of the
# pairs' ratios. Each has a sandbox of its own, with links of RATE (10gbit).
here=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "${1-}/quickstart" ] || { echo "usage: beside.sh TREE [PAIRS [RATE]]" >&2; exit 64; }
there=$(cd "$1" && pwd) pairs=${2:-9} link=${3:-10gbit}
out=$(mktemp -d) || exit 74
trap 'for tree in "$here" "$there"; do "$tree/quickstart" down >/dev/null; done; rm -rf "$out"' EXIT
unset HPC_TRAIN_SANDBOX
. "$here/tests/bench/speedup_lib.sh"
for tree in "$there" "$here"; do
    "$tree/quickstart" down >/dev/null
    "$tree/quickstart" up 2 --rate "$link" >/dev/null || exit
done

one() { # TREE OPTION…
    top=$1 home=$1/.sandbox/shared/home/user
    rate 2 "${@:2}"
}
compare() { # STEPS OPTION…
    local pair old new
    steps=$1
    shift
    : >"$out/pairs"
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2)); then
            new=$(one "$here" "$@") old=$(one "$there" "$@")
        else
            old=$(one "$there" "$@") new=$(one "$here" "$@")
        fi
        echo "$old $new $(divide "$new" "$old" %.4f)" >>"$out/pairs"
    done
    printf '%-24s there %8.1f images/s, here %8.1f; here/there %s (%s)\n' "$2" "$(awk '{ print $1 }' "$out/pairs" | median)" \
        "$(awk '{ print $2 }' "$out/pairs" | median)" "$(awk '{ print $3 }' "$out/pairs" | median)" "$(awk '{ print $3 }' "$out/pairs" | span)"
}

echo "$(described) $pairs pairs, links of $link."
compare 300 --strategy multi-worker-mirrored --model mnist-cnn --batch-size 64
compare 300 --strategy parameter-server --model mnist-cnn --batch-size 64
