#!/bin/bash
# examples.t: the example programs against the public headers, alone and on two ranks.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-examples.XXXXXX)
at_exit "rm -rf '$work'"
first_pictures "$work/pictures"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0

example() { # RANKS NAME ARGUMENT…
    local ranks=$1 name=$2
    shift 2
    if [ "$ranks" = 1 ]; then
        capture "$top_builddir/etc/examples/$name" "$@"
    else
        capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "$top_builddir/etc/examples/$name" "$@"
    fi
    is "$status" 0 "$name succeeds on $ranks rank(s)" || diag "$err"
}

example 1 mnist "$work/pictures"
is "$(grep -c '^Epoch' <<<"$out")" 3 "mnist: three epochs"
like "$out" "test accuracy: 0\.[0-9]{4}" "mnist: and an evaluation"

for ranks in 1 2; do
    example $ranks own_loop
    is "$(grep -c '^step' <<<"$out")" 4 "own_loop: rank 0 alone speaks"
    ok "$(awk '/^step 400/ { found = 1; bad = $NF > 0.005 } END { exit !found || bad }' <<<"$out"; echo $?)" "own_loop: it learns" ||
        diag "$out"
    mapfile -t "curve$ranks" <<<"$out"
done
ok "$(paste <(printf '%s\n' "${curve1[@]}") <(printf '%s\n' "${curve2[@]}") |
    awk '{ d = $6 - $12; if (d < -0.0005 || d > 0.0005) bad = 1; lines++ } END { exit bad || lines != 4 }'; echo $?)" \
    "own_loop: the same on two ranks" || diag "${curve1[@]}" "${curve2[@]}"

example 2 train_and_evaluate "$work/pictures" 25
is "$(grep -oE '(9/9|7/7) ' <<<"$out" | tr -d '\n')" "9/9 9/9 7/7 " "train_and_evaluate: evaluates when requested" || diag "$out"
is "$(grep -c val_accuracy <<<"$out")" 3 "train_and_evaluate: three evaluations"
like "$out" "after 25 steps: test accuracy 0\.[3-9]" "train_and_evaluate: 25 steps, and it learns" || diag "$out"
done_testing
