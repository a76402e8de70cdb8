#!/bin/bash
# norm_ranks.t: synchronized BatchNormalization gives 1, 2 and 4 ranks the same losses, also where some have no picture in
# the last batch; statistics of each rank's own do not. Moving statistics of an own loop are the same on all ranks. A rank
# lost while others wait for its sums ends the run.

program=$top_builddir/tests/unit/agent/strategy/norm_ranks
if ! command -v mpirun >/dev/null; then
    echo "1..0 # SKIP there is no mpirun"
    exit 0
fi
export OMP_NUM_THREADS=1
ranks() { # NUMBER ARGUMENT
    mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" "$program" "$2" 2>&1
}
losses() {
    sed -n 's/.*"loss": *\([0-9.e+-]*\).*/\1/p'
}
# The largest difference of two lists of nine losses, relative to the first.
difference() {
    paste <(echo "$one") - | awk 'NF != 2 { bad = 1 } { d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print (NR != 9 || bad) ? "incomplete" : worst + 0 }'
}
check() { # NUMBER NAME CONDITION...
    local number=$1 name=$2
    shift 2
    "$@" || printf 'not '
    echo "ok $number - $name"
}

echo 1..6
one=$("$program" synchronized | losses)
two=$(ranks 2 synchronized | losses | difference)
four=$(ranks 4 synchronized | losses | difference)
own=$(ranks 2 own | losses | difference)
check 1 "2 ranks have the losses of one, to 1e-4 ($two)" awk "BEGIN { exit !(\"$two\" != \"incomplete\" && $two + 0 < 1e-4) }"
check 2 "4 ranks too ($four)" awk "BEGIN { exit !(\"$four\" != \"incomplete\" && $four + 0 < 1e-4) }"
check 3 "not so by default: each rank's own statistics ($own)" awk "BEGIN { exit !(\"$own\" != \"incomplete\" && $own + 0 > 1e-3) }"

out=$(ranks 2 trainer)
check 4 "a loop of one's own: two ranks" [ "$(grep -c ^weights <<<"$out")" = 2 ]
check 5 "save the same weights and moving statistics" [ "$(sort -u <<<"$out" | grep -c ^weights)" = 1 ]
out=$(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 sh -c '"$0" lost; echo "ended with $?"' "$program" 2>&1)
{ [ "$(grep -c '^ended with 69$' <<<"$out")" -ge 1 ] && [[ $out =~ "rank 2" ]]; } || { sed 's/^/# /' <<<"$out"; printf 'not '; }
echo "ok 6 - a lost rank ends the others with 69, and is named"
