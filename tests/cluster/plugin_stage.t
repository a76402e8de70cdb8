#!/bin/bash
# plugin_stage.t: staging on the cluster: what the tasks find, and that failures, full disks and cancelling end the step
# with a message, drain no node and leave nothing behind.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin

mkdir -p "$work_here/set/a b"
echo one >"$work_here/set/one"
echo two >"$work_here/set/a b/two"
echo three >"$work_here/three"
sandbox_run --root chown -R user: "$work"

# shellcheck disable=SC2016
capture sandbox_run srun --hpc-train-stage="$work/set:data/train,$work/three" -N2 -n4 --ntasks-per-node=2 bash -c '
    echo "job=$SLURM_JOB_ID $(cat "$SLURM_TMPDIR/data/train/a b/two" "$SLURM_TMPDIR/three" "$HPC_TRAIN_DATA/one" | tr "\n" " ")$(stat -c %U "$HPC_TRAIN_DATA/one")"
    echo "$HPC_TRAIN_CONFIG" | grep -o "\"data\":\"[^\"]*\"" >&2'
job=$(job_of "$out")
is "$(sort -u <<<"$out")" "job=$job two three one user" "files and folders are on every node before the tasks start"
is "$(grep -c job= <<<"$out")" 4 "for every task"
is "$(grep -o '"data":.*' <<<"$err" | sort -u)" "\"data\":\"/tmp/hpc-train/$job/data/train\"" "HPC_TRAIN_DATA and the config name the first one"
is_clean "$job" "staging"

for mode in copy broadcast; do
    capture sandbox_run srun --hpc-train-stage="$work/set:$mode" --hpc-train-stage-mode=$mode -N2 true
    like "$err" "^hpc-train-stage: node[0-9]+: 2 files, 8 B, to .* in [0-9.]+ s[^\n]*$" "$mode: one line for the step reports what was copied"
    is "$status $(grep -c . <<<"$err")" "0 1" "$mode: and no other line"
done

capture sandbox_run bash -c "cd '$work' && HPC_TRAIN_STAGE=three srun -N1 bash -c 'cat \$HPC_TRAIN_DATA'"
is "$out" three "from the environment, relative to where srun was started"

# shellcheck disable=SC2016
capture sandbox_run salloc -N1 --hpc-train-stage="$work/set" bash -c '
    srun stat -c %i "$1/set/one" 2>/dev/null
    srun bash -c "stat -c %i \$HPC_TRAIN_DATA/one"; srun bash -c "stat -c %i \$HPC_TRAIN_DATA/one"' x "$work"
is "$(tail -n 2 <<<"$out" | sort -u | wc -l)" 1 "a later step finds what an earlier one staged"

# shellcheck disable=SC2016
capture sandbox_run salloc -N1 -n4 --hpc-train-stage="$work/set" bash -c '
    for i in 1 2 3 4; do srun --exact -n1 bash -c "cat \$HPC_TRAIN_DATA/one" & done; wait'
is "$(sort <<<"$out" | uniq -c | tr -s ' ')" " 4 one" "steps at once do not fight over it"

# ---- failures ----
fails() { # NAME STATUS MESSAGE SRUN-OPTION...
    local start=$SECONDS
    capture sandbox_run srun "${@:4}" sleep 300
    is "$status" "$2" "$1: the step ends with $2"
    ok "$([ $((SECONDS - start)) -lt 90 ]; echo $?)" "$1: within 90 s"
    like "$err" "$3" "$1: the error says why"
}
fails "a missing source" 66 "$work/nothing cannot be read: No such file" --hpc-train-stage="$work/nothing" -N2 -n3
is "$(grep -c "hpc-train-stage: .*cannot be read" <<<"$err")" 1 "a missing source: once for all nodes"
sandbox_run --root bash -c "mkdir -m 700 '$work/secret'"
fails "an unreadable source" 66 "$work/secret cannot be read: Permission denied" --hpc-train-stage="$work/secret" -N1
sandbox_run bash -c "ln -s /etc/passwd '$work/set/out'"
fails "a link out of the tree" 65 "set/out is a link to '/etc/passwd'" --hpc-train-stage="$work/set" -N1
sandbox_run rm "$work/set/out"
sandbox_run head -c 90M /dev/zero >"$work_here/huge"
for node in $(all_nodes | head -n 2); do capture on_node "$node" mount -o remount,size=80m /tmp; done
fails "a disk too small" 74 "needs 94 MB, but only .* are free" --hpc-train-stage="$work/huge" -N2
for node in $(all_nodes | head -n 2); do capture on_node "$node" mount -o remount,size=50% /tmp; done
sandbox_run rm "$work/huge"

# Only one node fails: the tasks on the others are not left waiting.
# shellcheck disable=SC2016
victim=$(all_nodes | tail -n 1)
other=$(all_nodes | head -n 1)
capture on_node "$victim" bash -c "mkdir -p /tmp/only && mount -t tmpfs none /tmp/only && touch /tmp/only/mark"
capture on_node "$other" bash -c "mkdir -p /tmp/only && echo here >/tmp/only/file"
start=$SECONDS
capture sandbox_run srun --hpc-train-stage=/tmp/only/file -N2 -w "$victim,$other" sleep 300
ok "$([ "$status" != 0 ] && [ $((SECONDS - start)) -lt 90 ]; echo $?)" "a source missing on one node ends the step on both"
like "$err" "$victim: /tmp/only/file cannot be read" "the error names the node"
on_node "$victim" umount /tmp/only

# The disk fills while it is copied: two steps at once, each of which would fit.
capture on_node "$victim" mount -o remount,size=80m /tmp
sandbox_run head -c 45M /dev/zero >"$work_here/fits"
# shellcheck disable=SC2016
for ((i = 0; i < 10; i++)); do
    capture sandbox_run bash -c '
        for n in 1 2; do srun -N1 -n1 -w "$1" --hpc-train-stage="$2" true 2>&1 & done; wait' x "$victim" "$work/fits"
    [[ $out == *"cannot be written: No space"* ]] && break
done
like "$out" "fits: the copy cannot be written: No space left on device" "a disk that fills up while copying: the error names the file"
no_job_left "$victim" "nothing is left there"
capture on_node "$victim" mount -o remount,size=50% /tmp

# ---- cancelling ----
sandbox_run head -c 2G /dev/zero >"$work_here/large"
cancelled() { # NAME HOW
    local pid helper start i
    sandbox_run srun --job-name="stage-$$" --hpc-train-stage="$work/large" -N1 -w "$other" -n2 sleep 60 2>"$work_here/errors" &
    pid=$!
    helper=
    for ((i = 0; i < 200; i++)); do
        helper=$(sandbox_run pgrep -f "hpc-train-stage .*$work/large" | head -n 1)
        [ -n "$helper" ] && break
        sleep 0.05
    done
    ok "$([ -n "$helper" ]; echo $?)" "$1: staging has begun"
    job=$(sandbox_run squeue --noheader --name="stage-$$" --format=%A)
    start=${EPOCHREALTIME/./}
    $2 "$job" "$helper" "$pid"
    wait "$pid"
    ok "$([ $? != 0 ]; echo $?)" "$1: srun ends with an error ($(((${EPOCHREALTIME/./} - start) / 1000)) ms)"
    is_clean "$job" "$1"
    is "$(sandbox_run pgrep -f "$work/large")" "" "$1: no process is left"
}
# shellcheck disable=SC2317 # called by name
{
    by_scancel() { sandbox_run scancel "$1"; }
    # shellcheck disable=SC2016
    by_ctrl_c() {
        sandbox_run bash -c 'pid=$(pgrep --oldest -f "^srun --job-name=$1"); for i in {1..60}; do kill -INT $pid 2>/dev/null || break; sleep 0.2; done' x "stage-$$"
    }
    by_killing_the_helper() { sandbox_run kill -KILL "$2"; }
}
cancelled scancel by_scancel
cancelled Ctrl-C by_ctrl_c
cancelled "a killed helper" by_killing_the_helper
like "$(cat "$work_here/errors")" "was killed by signal 9" "a killed helper: the message says so"

done_testing
