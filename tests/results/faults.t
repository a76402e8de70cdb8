#!/bin/bash
# faults.t: the N-th call of one kind on an output fails, once and for ever, or the process is killed there, for all N up to the
# end of a short run: an earlier file is whole, or the new one; what was learned is saved somewhere; the message names both.
# `make check-long` tries all N, `make check` one of ten.

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/results/sweep.sh
. "$(dirname "$0")/sweep.sh"
shim=$top_builddir/tests/results/.libs/shim.so
rescue=$work/rescue here=$work/here earlier=$work/earlier new=$work/new out=$work/out
mkdir "$earlier" "$here" "$new"
every=10
[ -z "${HPC_TRAIN_LONG-}" ] || every=1

# shellcheck disable=SC2046 # several words
fit --seed 2 $(all_in "$earlier") >/dev/null || exit
# shellcheck disable=SC2046
fit --seed 1 $(all_in "$new") >/dev/null || exit
chmod 600 "$earlier"/*.* "$earlier"/log/*.*

# A log that cannot be cut back may end in the middle of a line, where that is told.
is_torn() { # NAME
    [[ $err == *"it ends in the middle of a line"* ]] && cmp -s -n "$(stat -c %s "$out/$1")" "$out/$1" "$new/$1"
}

# What is the matter with an output in $out; nothing: it is the earlier one, or a new one, whole. "new" instead of the first.
is_whole() { # NAME [new]
    local file=$out/$1 lines
    [ -e "$file" ] || { echo "$1 is missing "; return; }
    [ "${2-}" = new ] || ! cmp -s "$file" "$earlier/$1" || return
    case $1 in
    log/*)
        lines=$(wc -l <"$file")
        [ "${2-}" != new ] || [ "$lines" = "$(wc -l <"$new/$1")" ] || echo "$1 has $lines lines "
        [ "$lines" -ge 2 ] && cmp -s "$file" <(head -n "$lines" "$new/$1") || is_torn "$1" || echo "$1 is neither of them "
        ;;
    *.json) case $(head -c 1 "$file")$(tail -c 3 "$file" | tr -d '\n') in
        '{}' | '{]}' | '{0}' | '{'*'}') [ "$1" = t.json ] || [ "$(grep -c '"steps": 4' "$file")" = 1 ] || echo "$1 is not of the new run " ;;
        *) echo "$1 is cut " ;;
        esac ;;
    *) cmp -s "$file" "$new/$1" || echo "$1 is neither of them " ;;
    esac
    [ "$(stat -c %a "$file")" = 600 ] || echo "$1 has mode $(stat -c %a "$file") "
}

# What is the matter with the event files in $out, of a run that ended well. Their size follows from what is in them.
are_events_whole() {
    local file=("$out"/log/train/events.out.*) want=("$new"/log/train/events.out.*)
    [ "${#file[@]}" = 1 ] && [ "$(stat -c %s "${file[0]}")" = "$(stat -c %s "${want[0]}")" ] || echo "the event files are not the new run's "
    [ "$(ls "$out/log/earlier-events/train" 2>/dev/null)" = "$(ls "$earlier/log/train")" ] || echo "an earlier run's event file is lost "
}

# Where the new weights are: those files that the message names first.
find_weights() { # MESSAGE
    local file others=''
    for file in "$out"/*w.safetensors "$rescue"/*w.safetensors "$here"/*w.safetensors; do
        cmp -s "$file" "$new/w.safetensors" || continue
        if [[ $1 == *"the weights are in $file"* ]]; then echo "$file"; return; fi
        others+="$file "
    done
    echo "$others"
}

one_run() { # KIND N HOW: what is wrong with how it ended
    local name bad='' where
    rm -rf "$out" "$rescue" "$here" "$work/count"
    mkdir "$here"
    cp -rp "$earlier" "$out"
    cd "$here" || exit
    # shellcheck disable=SC2046
    capture env FAULT="$1:$2:$3" FAULT_UNDER="$out" FAULT_COUNT="$work/count" HPC_TRAIN_RESCUE_DIR="$rescue" LD_PRELOAD="$shim" \
        "$hpc_train" fit --model mnist-convnet --data "$work/pictures" --epochs 2 --steps-per-epoch 2 \
        --batch-size 8 --verbose 2 --seed 1 $(all_in "$out")
    for name in "${outputs[@]}"; do bad+=$(is_whole "$name" "$([ "$status" != 0 ] || echo new)"); done
    case $status in
    0) bad+=$(are_events_whole) ;;
    74)
        where=$(find_weights "$err")
        [[ $err == *"$out"* ]] || bad+="it does not say what failed: $err "
        if [[ $out_text == *"Epoch 1/2"* ]]; then
            [ -n "$where" ] || bad+="what was learned is lost: $err "
            [[ $err == *"the weights are in $where"* ]] || bad+="it does not say where the weights are ($where): $err "
        fi
        ;;
    137) [ "$3" = kill ] || bad+="status $status " ;;
    *) bad+="status $status: $err " ;;
    esac
    if [ "$3" = kill ]; then # the next run clears up
        # shellcheck disable=SC2046
        fit $(all_in "$out") >/dev/null 2>&1 || bad+="the next run: status $? "
    fi
    [ "$1" = unlink ] || [ -z "$(find "$out" "$here" -name '*.tmp*')" ] || bad+="left: $(find "$out" -name '*.tmp*') "
    [ -z "$bad" ] || echo "$1 number $2, $3: $bad"
}
capture() { # as lib.sh's, but that $out is a folder here
    local errors=$work/errors
    out_text=$("$@" 2>"$errors")
    status=$?
    err=$(<"$errors")
}

sweep create open write torn untruncated fsync close ftruncate fallocate fchmod fchown flock rename unlink mkdir
one_run close 1 ever >/dev/null
is "$status" 74 "an error reported only by close() is an error, too"
one_run create 0 once >/dev/null
ok "$([ "$(stat -c %s "$work/count")" -ge 10 ]; echo $?)" "the shim sees the calls ($total runs)"
done_testing
