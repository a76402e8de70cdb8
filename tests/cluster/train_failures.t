#!/bin/bash
# Training when something is wrong: each time a clear message, the exit code, nothing hanging and nothing left.
# shellcheck disable=SC2154
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 3
need_training
lasts
all_tasks='s/.*tasks\{0,1\} [0-9,-]*: Exited with exit code \([0-9]*\)/\1/p'

# fails CODE REGEX WHAT CMD…: all tasks end with CODE, hpc-train prints one line, which matches.
fails() {
    local code=$1 regex=$2 what=$3 said
    shift 3
    capture sandbox_run "$@"
    is "$status" "$code" "$what: exit code $code"
    said=$(grep '^hpc-train: ' <<<"$err")
    like "$said" "$regex" "$what: the message"
    is "$(grep -c . <<<"$said")" 1 "$what: said once"
    is "$(sed -n "$all_tasks" <<<"$err" | sort -u)" "$code" "$what: all tasks end with the same status"
}

# ---- wrong usage ----------------------------------------------------------------------------------------------------
fails 64 "unknown option '--epoch-count=3': did you mean --epochs\?" "unknown option" $launch -N2 $quick --epoch-count=3
fails 64 'unknown command .train. .did you mean fit\?.; there are: fit, evaluate, predict, export, bench, data, summary, plan, info' "unknown command" $launch -N2 hpc-train train
fails 64 'no-such-model.*mnist-cnn.*mnist-convnet' "unknown model" $launch -N2 hpc-train fit --model no-such-model --data "$data"
fails 64 "--epochs: 'many' is not a whole number" "no number" $launch -N2 $quick --data "$data" --epochs many
fails 64 '--data is missing' "no data" $launch -N2 $quick
fails 64 'global batch of 2 cannot be shared among 3 ranks' "too small a batch" $launch -N3 $quick --data "$data" --global-batch-size 2

# ---- wrong data -----------------------------------------------------------------------------------------------------
labels=train-labels-idx1-ubyte images=train-images-idx3-ubyte
fails 66 "^hpc-train: $work/none: No such file" "missing folder" $launch -N3 $quick --data "$work/none"
copy_data missing && rm "$work_here/missing/$labels.gz"
fails 66 "missing/$labels .*No such file" "missing file" $launch -N3 $quick --data "$work/missing"
copy_data truncated && truncate --size=1000000 "$work_here/truncated/$images.gz"
fails 65 "truncated/$images.gz: it is truncated" "truncated file" $launch -N3 $quick --data "$work/truncated"
copy_data magic && rm "$work_here/magic/$images.gz" && gzip -dc "$fashion/$images.gz" >"$work_here/magic/$images" &&
    printf '\001' | dd of="$work_here/magic/$images" bs=1 seek=3 conv=notrunc 2>/dev/null
fails 65 "magic/$images: wrong magic number 0x00000801" "wrong magic" $launch -N3 $quick --data "$work/magic"
copy_data range && rm "$work_here/range/$labels.gz" && gzip -dc "$fashion/$labels.gz" >"$work_here/range/$labels" &&
    printf '\013' | dd of="$work_here/range/$labels" bs=1 seek=$((8 + 41)) conv=notrunc 2>/dev/null
fails 65 "range/$labels: label 11 of sample 41 is out of range" "label out of range" $launch -N3 $quick --data "$work/range"

# On one node only: the others are told.
sandbox_run srun -N3 -w "node[0-2]" bash -c "mkdir -p /tmp/${work##*/} && cp $pictures/* /tmp/${work##*/}/"
at_exit "sandbox_run srun -N3 -w node[0-2] rm -rf '/tmp/${work##*/}' >/dev/null 2>&1"
sandbox_run srun -N3 -w "node[0-2]" bash -c "[ \$SLURM_PROCID != 1 ] || rm /tmp/${work##*/}/$labels"
fails 66 "rank 1 \(node1\): /tmp/.*$labels .*No such file" "missing on one node" $launch -N3 -w "node[0-2]" $quick --data "/tmp/${work##*/}"

# ---- what cannot be written -----------------------------------------------------------------------------------------
fails 74 "/no/such/folder/s.json: making a file in its folder failed" "no folder for the summary" \
    $launch -N2 $quick --data "$pictures" --summary-json /no/such/folder/s.json
fails 74 "/proc/logs" "no folder for the logs" $launch -N2 $quick --data "$pictures" --log-dir /proc/logs

# ---- a port in use --------------------------------------------------------------------------------------------------
# Somebody takes rank 0's port between the plugin's look at it and rank 0 itself, answers nobody, and stays when the step has ended.
# Slurm, which does not find him behind his parent (proctrack/linuxproc), would keep the step for what he could still say.
ports=$((23000 + $$ % 500 * 2))
listen="use IO::Socket::INET; my \$s = IO::Socket::INET->new(Listen => 5, LocalPort => $ports) or die; print qq(listening\n); close STDOUT; close STDERR; sleep 600"
capture sandbox_run $launch --hpc-train --hpc-train-port=$ports -N2 -w node0,node1 bash -c "
    [ \$SLURM_PROCID != 0 ] || { exec 3< <(exec perl -e '\$| = 1; $listen; # $work'); read -r <&3; }
    exec $quick --data $pictures"
for pid in $(processes perl); do kill "$pid"; done
is "$status" 78 "port in use: exit code 78"
like "$err" "port $ports on node0 is in use .*--hpc-train-port" "port in use: port, host and option are named"
like "$err" 'rank 0 on node0 was lost: (it ended before all ranks had come|its port takes connections, and nobody answers there)' "port in use: rank 1 gives up"
is "$(sed -n 's/^srun: error: node1: task 1: Exited with exit code //p' <<<"$err")" 69 "with 69"

# ---- a rank that does not come, or is lost --------------------------------------------------------------------------
capture sandbox_run $launch --hpc-train -N2 -w node0,node1 bash -c "[ \$SLURM_PROCID = 0 ] || exit 0; HPC_TRAIN_JOIN_SECONDS=3 exec $quick --data $pictures"
is "$status" 69 "a rank that never comes: exit code 69"
like "$err" 'rank 1 on node1 was lost: it did not come within 3 s' "a rank that never comes is named"

# Rank 0's task ends without ever having listened, which the plugin tells those who wait for it, or will. What it says is also a
# variable of tasks whose data were being staged then. Who is not told waits for longer than anything may take here.
soon=110 # what does not end by itself is ended after $run_limit s
for way in signal late variable; do
    mark
    capture sandbox_run srun --kill-on-bad-exit=0 --hpc-train -N2 -w node0,node1 bash -c "[ \$SLURM_PROCID = 1 ] || { [ $way = late ] || sleep 1; exit 5; }
        [ $way != late ] || sleep 2
        [ $way != variable ] || { trap '' WINCH; export HPC_TRAIN_RANK_0_ENDED=1; }; exec \"\$@\"" late $quick --data "$pictures"
    like "$err" 'rank 0 on node0 was lost: it ended before all ranks had come' "rank 0 ends before it listens: the error names it ($way)" || diag "$err"
    is "$(sed -n 's/^srun: error: node1: task 1: Exited with exit code //p' <<<"$err")" 69 "rank 1 ends with 69"
    ok $((SECONDS - marked > soon)) "soon ($((SECONDS - marked)) s)"
done

# loses RANK SIGNAL NODES: sends the signal to a rank that trains; the others must end with 69 and name it, on a quiet machine
# within 30 s. One that is stopped is noticed by its silence, after 8 s; then one of the others has it killed by Slurm, all of
# which may take 40 s, and may be killed with it. (srun ends with 137 in either case, as the stopped rank is killed.)
loses() {
    local what="rank $1 of $3 gets SIG$2" others ended="^task"
    [ "$2$3" != STOP2 ] || ended="^task|task $((1 - $1)): Killed"
    begin $launch -N"$3" -w "node[0-$(($3 - 1))]" $lasts
    wait_for trains
    sleep 0.5
    mark
    kill "-$2" "$(rank_pid "$1")"
    finish
    others=$(sed -n "s/.*: \(tasks\{0,1\} [0-9,-]*\): Exited with exit code 69/\1/p" <<<"$err")
    ok $((seconds > soon)) "$what: the others end soon ($seconds s)"
    like "$err" "hpc-train: rank [0-9]+ \(node[0-9]\): rank $1 on node$1 was lost" "$what: the error names the rank"
    like "$others; $err" "$ended" "$what: the others end with 69"
    unlike "$err" 'MPI_ABORT|An MPI communication peer|core dumped' "$what: no other message"
    ok "$(wait_for none_left; echo $?)" "$what: no process is left"
    wait_for none_drained
    ok $? "$what: no node is drained"
}
loses 1 KILL 3
loses 0 KILL 3
loses 2 STOP 3
loses 0 STOP 2

# ---- signals that ask to stop ---------------------------------------------------------------------------------------
srun_pid() { processes srun | sort -n | head -n1; }

# srun hands a single Ctrl-C on when told so.
begin $launch -N2 --disable-status $lasts --save-weights "$work/stopped.safetensors" \
    --summary-json "$work/stopped.json"
wait_for trains
sleep 0.5
kill -INT "$(srun_pid)"
finish
is "$status" 130 "Ctrl-C: exit code 130"
like "$err" 'hpc-train: stopped by SIGINT after step [0-9]+, in epoch [0-9]+ of 1000' "Ctrl-C: says where it stopped"
is "$(grep -c '^hpc-train:' <<<"$err")" 1 "Ctrl-C: said once"
is "$(number stopped_by "$work_here/stopped.json")" '"SIGINT"' "Ctrl-C: the summary is written"
capture sandbox_run hpc-train evaluate --model mnist-convnet --data $pictures --weights "$work/stopped.safetensors"
is "$status" 0 "Ctrl-C: the weights so far are saved"

# Otherwise the second within a second makes srun kill the step.
begin $launch -N2 $lasts
wait_for trains
mark
pid=$(srun_pid)
# A busy machine may show srun two of them as one.
for _ in {1..60}; do
    kill -INT "$pid" 2>/dev/null || break
    sleep 0.2
done
finish
ok $((status == 0 || status == 124)) "Ctrl-C twice: the step ends ($seconds s)"
ok "$(wait_for none_left; echo $?)" "Ctrl-C twice: no process is left"

begin $launch -N2 $lasts
wait_for trains
kill -TERM "$(rank_pid 1)"
finish
is "$status" 143 "SIGTERM to one rank stops all: exit code 143"
ok "$(wait_for none_left; echo $?)" "no process is left"
ok "$(none_drained; echo $?)" "no node is drained"
done_testing
