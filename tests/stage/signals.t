#!/bin/bash
# signals.t: SIGTERM at any moment of any work of hpc-train-stage: it ends within a second, and leaves nothing unfinished under
# a final name. Some moments of each kind in `make check`, 50 in `make check-long`.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=$(readlink -f "${top_builddir:?run by make check}/hpc-train-stage")
work=$(folder_in_memory hpc-train-signals)
at_exit "rm -rf '$work'"
cd "$work" || exit
times=${HPC_TRAIN_LONG:+50}
times=${times:-2}
RANDOM=${HPC_TRAIN_SEED:-$RANDOM}

mkdir -p src/many to job out
head -c 100M /dev/zero >src/large
(cd src/many && seq 1500 | xargs touch && for ((i = 0; i < 500; i++)); do echo $i >small$i; done)
truncate -s 300M src/holes
tar -C src/many -czf many.tar.gz .
ln src/large job/large
cp -r src/many job/many
export SLURM_TMPDIR=$work/job

# Ends the process, and leaves how in $status and the milliseconds it took in $took.
end() { # PID
    local start
    # Before it is another program it is this one, with its traps.
    while [ "/proc/$1/exe" -ef /proc/$$/exe ]; do sleep 0.001; done
    start=${EPOCHREALTIME/./}
    kill -TERM "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    status=$?
    took=$(((${EPOCHREALTIME/./} - start) / 1000))
}

# ended NAME WHERE WHAT COMMAND...: WHERE/WHAT, which COMMAND makes, is not there or whole, and nothing else is there.
ended() {
    local name=$1 where=$2 what=$3 i pid whole start worst=0 cut=0 bad=
    shift 3
    rm -rf to out
    mkdir to out
    start=${EPOCHREALTIME/./}
    limit 120 "$@" 2>/dev/null || bad="status $? without a signal"
    whole=$(((${EPOCHREALTIME/./} - start) / 1000))
    for ((i = 0; i < times; i++)); do
        rm -rf to out
        mkdir to out
        "$@" 2>errors &
        pid=$!
        sleep "$(printf '0.%03d' $((RANDOM % (whole < 999 ? whole : 999))))"
        end $pid
        [ "$took" -le $worst ] || worst=$took
        case $status in
        0) ;;
        75 | 143) cut=$((cut + 1)) ;; # 143: before it was ready for signals
        *) bad+="status $status: $(cat errors) " ;;
        esac
        if [ -e "$where/$what" ]; then
            diff -rq "src/${what%.*}" "$where/$what" >/dev/null || bad+="a torn copy after $status "
        elif [ "$status" = 0 ]; then
            bad+="nothing after 0 "
        fi
        [ -z "$(find "$where" -mindepth 1 -maxdepth 1 ! -name "$what" ! -name "$what.partial" ! -name .hpc-train)" ] || bad+="$(ls -A "$where") "
        [ -z "$(find "$where/.hpc-train" -mindepth 2 2>/dev/null)" ] || [ "$status" = 143 ] || [ "$status" = 0 ] ||
            bad+="$(find "$where/.hpc-train") "
    done
    is "$bad" "" "$name: of $times signals $cut interrupted it, and nothing unfinished is left"
    ok "$([ $worst -lt 1000 ]; echo $?)" "$name: it ends within a second ($worst ms)"
}

ended "a large file" to large "$stage" --to to src/large
ended "many small files" to many "$stage" --to to src/many
ended "holes" to holes.copy "$stage" --to to src/holes:holes.copy
ended "an archive" to many.tree "$stage" --mode extract --to to many.tar.gz:many.tree
ended "results, a large file" out large "$stage" --out large:out/large
ended "results, many small files" out many "$stage" --out many:out/many

# ---- while it waits (for other nodes: plugin_broadcast.t) ----
waits() { # NAME PID
    sleep 0.3
    ok "$([ -e "/proc/$2" ]; echo $?)" "$1: it waits"
    end "$2"
    is "$status $([ "$took" -lt 1000 ]; echo $?)" "75 0" "$1: ends within a second ($took ms)"
}
rm -rf to
mkdir to
"$stage" --to to src/large &
first=$!
for ((i = 0; i < 200; i++)); do [ -e to/.hpc-train/incoming/0 ] && break; sleep 0.01; done
kill -STOP $first
"$stage" --to to src/many 2>/dev/null &
waits "behind another run" $!
kill -KILL $first
wait $first 2>/dev/null
is "$(ls to)" "" "nothing was staged"

# ---- what does not ask it to end ----
rm -rf to
mkdir to
"$stage" --to to src/many &
pid=$!
while [ "/proc/$pid/exe" -ef /proc/$$/exe ]; do sleep 0.001; done
until [ -e to/.hpc-train ] || [ ! -e /proc/$pid/status ]; do sleep 0.001; done # it is ready for signals
for signal in USR1 USR2 ALRM PROF USR1; do kill -$signal $pid 2>/dev/null; done
wait $pid
is "$?" 0 "SIGUSR1 and SIGUSR2 are ignored"
is "$(diff -rq src/many to/many)" "" "staging completes"
(ulimit -f 20000 && "$stage" --to to src/large) 2>errors # of 1,024 bytes
is "$?" 74 "ulimit -f is an error of writing"
like "$(cat errors)" "large.*File too large" "the error names the file"

done_testing
