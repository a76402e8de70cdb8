# tests/results/sweep.sh - failing calls, one after the other (tests/results/shim.c). Sourced; not a test.
# shellcheck shell=bash
# sweep CALLS: one_run with the N-th of each kind of call failing, once, for ever, or with the process killed there; leaves
# $total. one_run KIND N HOW prints what is wrong; the shim counts in $work/count; $every: of how many N one is tried.
sweep() {
    local kind how bad runs n begin=$((${HPC_TRAIN_SEED:-$RANDOM} % every + 1))
    total=0
    for kind in "$@"; do
        for how in once ever kill; do
            bad='' runs=0
            for ((n = begin; ; n += every)); do
                bad+=$(one_run "$kind" "$n" $how)
                runs=$((runs + 1))
                [ "$(stat -c %s "$work/count" 2>/dev/null || echo 0)" -ge "$n" ] || break
            done
            total=$((total + runs))
            is "$bad" "" "$kind fails, $how: $runs runs from number $begin"
        done
    done
}
