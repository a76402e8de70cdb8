#!/bin/bash
# checkpoint_faults.t: the N-th call of one kind on a folder of checkpoints fails, once and for ever, or the process is killed
# there, for all N up to the end of a run that saves three times: each time the newest checkpoint that loads is whole and not
# older than the last that was saved; the error names the file; the next run saves and clears up.
# `make check-long` tries all N, `make check` one of ten.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
# shellcheck source=tests/results/sweep.sh
. "$(dirname "$0")/sweep.sh"
shim=$top_builddir/tests/results/.libs/shim.so saver=$top_builddir/tests/results/saver
[ -x "$saver" ] || skip_all "cmocka is missing: $saver is not built"
parent=/tmp
[ ! -w /dev/shm ] || parent=/dev/shm
work=$(mktemp -d $parent/hpc-train-saver.XXXXXX)
at_exit "rm -rf '$work'"
out=$work/out
every=10
[ -z "${HPC_TRAIN_LONG-}" ] || every=1

"$saver" save "$work/earlier" 1 3 >/dev/null
is "$("$saver" load "$work/earlier")" 3 "three are saved"
is "$(ls "$work/earlier")" "$(printf '%s\n' best.json step-0000000020 step-0000000030)" "and two kept"

# The newest that loads, if nothing is the matter with it; what was saved last is in $saved.
check_newest() {
    local newest
    newest=$("$saver" load "$out" 2>&1)
    [[ $newest =~ ^[0-9]+$ ]] || { echo "it does not load: $newest "; return; }
    [ "$newest" -ge "$saved" ] && [ "$newest" -le 6 ] || echo "loads $newest after $saved was saved "
}

one_run() { # KIND N HOW: what is wrong with how it ended
    local printed status saved bad='' fault
    rm -rf "$out" "$work/count"
    cp -rp "$work/earlier" "$out"
    printed=$(FAULT="$1:$2:$3" FAULT_UNDER="$out" FAULT_COUNT="$work/count" LD_PRELOAD="$shim" limit 60 "$saver" save "$out" 4 3 2>"$work/notes")
    status=$?
    saved=$(sed -n 's/^saved //p' <<<"$printed" | tail -n 1)
    saved=${saved:-3}
    fault=$(grep ^failed <<<"$printed")
    case $status in
    0)
        [ "$saved" = 6 ] || bad+="saves $saved only "
        # descriptors are closed that nothing was written through; names, removed that nothing depends on
        [[ $1 =~ ^(close|rename|unlink|rmdir|futimens)$ ]] || [ "$2" = 0 ] ||
            [ "$(stat -c %s "$work/count" 2>/dev/null || echo 0)" -lt "$2" ] || grep -q "old checkpoints stay" "$work/notes" ||
            bad+="nobody hears of it "
        ;;
    74)
        [[ $fault == *"$out"* ]] || bad+="the error names no file: $fault "
        [ "$3" != once ] || [ "$(wc -l <<<"$fault")" = 1 ] || bad+="more than one save fails: $fault "
        ;;
    137) [ "$3" = kill ] || bad+="status $status " ;;
    *) bad+="status $status: $printed " ;;
    esac
    bad+=$(check_newest)
    printed=$(limit 60 "$saver" save "$out" 7 2 2>&1) || bad+="the next run: $printed "
    [ "$("$saver" load "$out" 2>&1)" = 8 ] || bad+="the next run cannot load what it saved "
    [ -z "$(find "$out"/step-* -name '*.tmp-*')" ] || bad+="left: $(find "$out"/step-* -name '*.tmp-*') "
    printed=$(cd "$out" && echo step-*)
    [ "$printed" = "step-0000000070 step-0000000080" ] || bad+="stay: $printed "
    [ -z "$bad" ] || echo "$1 number $2, $3: $bad"
}

sweep create write torn fsync close rename link unlink mkdir rmdir futimens
for kind in linked renamed unlinkable; do
    rm -rf "$out"
    cp -rp "$work/earlier" "$out"
    for first in 4 6; do # the second time, the newest is replaced
        printed=$(FAULT="$kind:1:ever" FAULT_UNDER="$out" FAULT_COUNT="$work/count" LD_PRELOAD="$shim" \
            "$saver" save "$out" $first $((7 - first)) 2>&1)
        is "$?" 0 "every call is $kind: all from $first on are saved" || diag "$printed"
        is "$("$saver" load "$out" 2>&1)" 6 "and loads"
    done
    ok "$([ -e "$out/step-0000000060/part-00001.2.safetensors" ]; echo $?)" "no file was replaced before the manifest"
done
for kind in create write fsync close link; do
    rm -rf "$out"
    cp -rp "$work/earlier" "$out"
    FAULT="$kind:1:ever" FAULT_UNDER="$out" FAULT_COUNT="$work/count" LD_PRELOAD="$shim" "$saver" save "$out" 4 3 >/dev/null 2>&1
    is "$?" 74 "$kind that always fails is an error"
done
for kind in create write fsync close rename link unlink mkdir rmdir; do
    rm -f "$work/count"
    one_run "$kind" 0 once >/dev/null
    ok "$([ -s "$work/count" ]; echo $?)" "the shim sees calls of $kind"
done
diag "$total runs"
done_testing
