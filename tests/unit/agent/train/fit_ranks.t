#!/bin/bash
# fit_ranks.t: 1, 2 and 4 ranks draw the same numbers in RandomFlip, RandomCrop, RandomZoom, RandomBrightness and Dropout, so that every step has the
# same loss; also where slices differ in length. A picture that only one rank finds damaged ends all of them alike.

program=$top_builddir/tests/unit/agent/train/fit_ranks
if ! command -v mpirun > /dev/null; then
    echo "1..0 # SKIP there is no mpirun"
    exit 0
fi
export OMP_NUM_THREADS=1
ranks() {
    mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" "$program" | sed -n 's/.*"loss": *\([0-9.e+-]*\).*/\1/p'
}

echo 1..7
one=$("$program" | sed -n 's/.*"loss": *\([0-9.e+-]*\).*/\1/p')
[ "$(wc -l <<<"$one")" = 8 ] && [ "$(sort -u <<<"$one" | wc -l)" = 8 ] || printf 'not '
echo "ok 1 - eight steps on one rank, each with a loss of its own"
number=2
for n in 1 2 4; do
    worst=$(paste <(echo "$one") <(ranks $n) | awk '
        NF != 2 { bad = 1 }
        { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print (NR != 8 || bad) ? "incomplete" : worst < 1e-5 ? "fine" : worst }')
    [ "$worst" = fine ] || printf 'not '
    echo "ok $number - $n rank(s) have the losses of one process, to 1e-5 ($worst)"
    number=$((number + 1))
done

folder=$(mktemp -d /tmp/hpc-train-fit-ranks.XXXXXX)
trap 'rm -rf "$folder"' EXIT
[ "$(bash "$top_srcdir/tests/strategy/ranks.sh" "$folder" 4 "$program" | sed -n 's/.*"loss": *\([0-9.e+-]*\).*/\1/p')" = "$(ranks 4)" ] || printf 'not '
echo "ok $number - 4 ranks over TCP have the losses that they have over MPI, to the digit"
number=$((number + 1))

# Each rank's message and exit status.
ended=$(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 \
    sh -c '"$0" damaged; echo "ended with $?"' "$program" 2>&1)
[ "$(grep -c '^ended with 65$' <<<"$ended")" = 2 ] || printf 'not '
echo "ok $number - a damaged picture of one rank: both end with 65"
{ grep -q '^fit_ranks: rank [01] (.*): /.*/train/a/60.png: it is damaged' <<<"$ended" &&
    [ "$(wc -l <<<"$ended")" = 3 ]; } || { sed 's/^/# /' <<<"$ended"; printf 'not '; }
echo "ok $((number + 1)) - its name and the rank's are said once, and nothing else"
