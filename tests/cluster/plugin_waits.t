#!/bin/bash
# plugin_waits.t: whatever root's part of the plugin waits for, a user stops: processes, the locks of his folders, file systems that
# do not answer. scancel ends his step (within 30 s on a quiet machine), other jobs do not notice, and no node is drained. doc/security.md has the
# list. In sandboxes of its own, with proctrack/linuxproc and proctrack/cgroup.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
dir=/shared/waits
mkdir -p "$own$dir"
cp "$top_srcdir"/tests/cluster/{hold,stopper}.py "${top_builddir:?run by make check}/tests/cluster/.libs/slow_init.so" "$own$dir"

# Stands for hpc-train-stage where storage is slow.
cat >"$own/root/opt/hpc-train/bin/slow-stage" <<'END'
#!/bin/bash
all=" $* "
if [[ $all == *" --record "* ]]; then
    trap '' TERM
    from=${all#* --from } record=${all#* --record }
    from=${from%% *}
    all=$(tr '\0' '\n' <"${from%/*}/.records-${from##*/}/${record%% *}")
fi
if [[ $all != *" --all "* && $all == *slow* ]]; then read -r -t 300 -u 9 9<>/tmp/slow; fi
exec /opt/hpc-train/bin/hpc-train-stage "$@"
END

chmod 755 "$own/root/opt/hpc-train/bin/slow-stage"
touch "$own$dir/slow"

start() { # PROCTRACK
    local node
    "$sandbox" down >/dev/null 2>&1
    HPC_TRAIN_SLURM_CONF=ProctrackType=proctrack/$1 HPC_TRAIN_PLUGSTACK_ARGS="helper=/opt/hpc-train/bin/slow-stage stage_last_try=2" \
        capture limit 60 "$sandbox" up 2
    [ "$status" = 0 ] || return
    sandbox_run --root chown -R user: $dir
    for node in node0 node1; do
        on_node $node sh -c 'mkfifo -m 666 /tmp/slow; [ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229'
        as_user_on $node mkdir /tmp/fuse
    done
}
as_user_on() { on_node "$1" setpriv --reuid=12000 --regid=12000 --clear-groups "${@:2}"; }
within() { # SECONDS COMMAND...: whether it succeeds in that time
    local end=$((SECONDS + $1))
    until "${@:2}"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
says() { grep -q "$1" "$own/$2"; }
running() { job=$(sandbox_run squeue --noheader --name="$1" --states=R --format=%A) && [ -n "$job" ]; }
gone() { [ -z "$(sandbox_run squeue --noheader --job="$1" --format=%A 2>/dev/null)" ]; }
no_stepd() { ! sandbox_run --root pgrep -u root -f "^slurmstepd: \[$1\." >/dev/null; }
ended() { ! kill -0 "$1" 2>/dev/null; }
is_whole() { # NAME
    is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$1: no node is drained"
}
# begin NAME NODE OPTION...: a step of one task in a job, in the background: $step, and $job once it runs.
begin() {
    sandbox_run env SLURM_JOB_ID_HET_GROUP_0=999999 SLURM_JOB_ID_HET_GROUP_1=999998 srun -N1 -w "$2" --mpi=none --chdir=$dir \
        --job-name="$1" "${@:3}" >"$own/out" 2>&1 &
    step=$!
    within 60 running "$1" || diag "$1 does not start"
}
stop() { # NAME TASK|HELPER|FIRST
    as_user_on node1 python3 $dir/stopper.py "$job" "$2" >"$own/stopper" 2>&1 &
    stopper=$!
    within 60 says stopped stopper
    ok $? "$1: the user stops the processes" || diag "$(cat "$own/stopper" "$own/out")"
}
go_on() {
    sandbox_run --root pkill -f "$dir/stopper.py"
    # Not by its number alone, which is another program's by now if it has ended.
    [[ " $(jobs -rp | xargs) " != *" $step "* ]] || kill $step
    wait $stopper $step
}
cancel() { # NAME
    local from=$SECONDS
    sandbox_run scancel "$job"
    within 120 ended $step && within 120 no_stepd "$job"
    ok $? "$1: scancel ends it ($((SECONDS - from)) s; on a quiet machine within 30 s)"
}

# stopped PROCTRACK: processes.
stopped() {
    sandbox_run --root sh -c "echo required $dir/slow_init.so >/etc/slurm/plugstack.conf.d/a.conf"
    begin "$1-first" node1 --hpc-train sleep 300
    stop "$1, a task before task_init" FIRST
    # shellcheck disable=SC2016
    is "$(sandbox_run --root sh -c 'for pid in $(pgrep -u 12000 -x hpc-train); do ls -l /proc/$pid/fd; done | sed -n "s/.* -> //p" | grep -c "^/run/hpc-train"')" 0 \
        "$1: it has not the file in which ports are reserved"
    cancel "$1, a task before task_init"
    go_on
    sandbox_run --root rm /etc/slurm/plugstack.conf.d/a.conf
    begin "$1-teller" node1 --hpc-train-stage=$dir/slow true
    stop "$1, who tells the components" TASK
    cancel "$1, who tells the components"
    go_on
    begin "$1-alone" node1 --hpc-train-stage=$dir/slow true
    stop "$1, the same" TASK
    within 90 ended $step && within 30 no_stepd "$job"
    ok $? "$1: the step also ends without scancel"
    go_on
    begin "$1-staging" node1 --hpc-train-stage=$dir/slow true
    stop "$1, task and helper that stage" HELPER
    cancel "$1, task and helper that stage"
    go_on
    # shellcheck disable=SC2016
    begin "$1-copying" node1 --hpc-train-stage-out=res:$dir/slow-out sh -c 'echo >$SLURM_TMPDIR/res'
    stop "$1, helper that copies out" HELPER
    cancel "$1, helper that copies out"
    go_on
    is_whole "$1"
}

start linuxproc
ok "$status" "a sandbox with proctrack/linuxproc starts" || { diag "$err"; exit 1; }
stopped linuxproc

serve() { # NODE FOLDER...
    on_node "$1" sh -c 'umount -l /tmp/fuse 2>/dev/null'
    on_node "$1" python3 $dir/hold.py serve "${@:2}" >"$own/serve" 2>&1 &
    server=$!
    within 20 says serving serve || diag "$(cat "$own/serve")"
}
# What looks for processes by their arguments might have to wait, too.
release() { sandbox_run --root kill -KILL "$(sed -n 's/^serving //p' "$own/serve")"; }

# ---- results that go to a file system which does not answer: who copies them cannot even be killed ----
serve node1 /tmp/fuse
# shellcheck disable=SC2016
begin stuck node1 --hpc-train-stage-out=res:/tmp/fuse/never/res sh -c 'echo >$SLURM_TMPDIR/res'
within 60 says "held name" serve
ok $? "a user's file system does not respond to the helper"
sandbox_run scancel "$job"
within 180 says "\[$job\.0\] error: hpc-train: node1: not all of .* its status is lost" log/node1.log
ok $? "slurmstepd continues without it after scancel"
# Slurm would wait for such a process of the user's, as it does for a task in that state, and drain the node after a minute.
release
within 90 ended $step && within 300 gone "$job"
ok $? "the job ends once the file system is released"
wait $step $server

# ---- one that answers nothing, mounted on a job's directory: other steps and other jobs do not ask it ----
sandbox_run salloc -N1 -w node0 --hpc-train-stage-out=none:$dir/none --job-name=mounted sh -c "srun true; touch $dir/there; until [ -e $dir/over ]; do sleep 0.1; done" >"$own/out" 2>&1 &
step=$!
within 60 running mounted
mounted=$job
within 60 test -e "$own$dir/there"
serve node0 "/tmp/hpc-train/$mounted:dead"
capture sandbox_run timeout 60 srun --jobid="$mounted" --overlap --mpi=none true
is "$status" 0 "a file system on a job's directory: a step of the job that was begun without hpc-train runs"
capture sandbox_run timeout 60 srun --jobid="$mounted" --overlap --mpi=none --hpc-train true
like "$status $err" "^74 .*a file system is mounted on it" "a step with hpc-train there: the error names the mount"
# shellcheck disable=SC2016
capture sandbox_run timeout 60 srun -N1 -w node0 --mpi=none --hpc-train sh -c 'echo job=$SLURM_JOB_ID'
ran "another job runs on the node"
within 300 gone "$(job_of "$out")"
ok $? "and ends"
sandbox_run scancel "$mounted"
within 300 gone "$mounted"
ok $? "the first job ends, too"
is "$(grep "was not done after" "$own/log/node0.log")" "" "no timed child ran out of time"
release
touch "$own$dir/over"
wait $step $server

# ---- a folder's lock, which its removal needs ----
serve node1 /tmp/fuse
begin lock node1 --hpc-train sh -c "until [ -e $dir/enough ]; do sleep 0.1; done"
as_user_on node1 python3 $dir/hold.py folder /tmp/fuse/file "/tmp/hpc-train/$job" >"$own/hold" 2>&1 &
holder=$!
within 20 says "held read" serve
ok $? "a user's process holds the lock of its job directory" || diag "$(cat "$own/hold")"
from=$SECONDS
touch "$own$dir/enough"
wait $step
within 300 gone "$job" # where slurmctld has not heard of the step's end, it asks again after two minutes
ok $? "a job whose directory is locked leaves the queue ($((SECONDS - from)) s)"
within 60 grep -q "job $job: removing the job directory was not done" "$own"/log/node1.log
like "$(cat "$own"/log/node1.log)" "job $job: removing the job directory was not done after 25 seconds" "the log says why"
capture sandbox_run timeout 60 srun -N1 -w node1 --mpi=none --hpc-train true
ran "other jobs run there"
release
wait $holder $server
empty() { [ "$(on_node node1 ls -A /tmp/hpc-train)" = .boot ]; }
capture sandbox_run timeout 60 srun -N1 -w node1 --mpi=none --hpc-train true
within 60 empty
ok $? "once the lock is free, a later epilog removes it"

# ---- the environment of a process, which the epilog reads when a slurmstepd was killed ----
serve node1 /tmp/fuse
begin killed node1 --hpc-train sleep 300
# A job runs before its step does.
finds_stepd() { stepd=$(sandbox_run --root pgrep -u root -f "^slurmstepd: \[$job\.0") && sandbox_run --root pgrep -u 12000 -x sleep >/dev/null; }
within 60 finds_stepd
as_user_on node1 python3 $dir/hold.py exec /tmp/fuse/file >"$own/hold" 2>&1 &
holder=$!
within 20 says "held close" serve
ok $? "a user's process has an unreadable environment" || diag "$(cat "$own/hold")"
sandbox_run --root kill -KILL "$stepd"
sandbox_run scancel "$job"
within 300 gone "$job" # slurmctld asks a busy node again after two minutes
ok $? "the job of a killed slurmstepd ends" || diag "$(tail -n 20 "$own"/log/slurmctld.log)"
within 120 grep -q "epilog for job $job ran for" "$own"/log/node1.log # slurmctld may have given up before
took=$(sed -n "s/.*epilog for job $job ran for \([0-9]*\) seconds.*/\1/p" "$own"/log/node1.log)
ok "$([ "${took:-9999}" -le 60 ]; echo $?)" "a process whose environment cannot be read holds the epilog for less than a minute ($took s)"
like "$(cat "$own"/log/node1.log)" "job $job: a last try to copy out was not done after 27 seconds" "the log says why"
release
kill $step 2>/dev/null
wait $step $holder $server
is_whole "linuxproc, file systems and locks"

# ---- with control groups ----
start cgroup
if [[ $err == *"needs the freezer"* ]]; then
    skip "proctrack/cgroup" "this kernel has no freezer of control groups, version 1"
else
    ok "$status" "a sandbox with proctrack/cgroup starts" || { diag "$err"; exit 1; }
    stopped cgroup
fi

done_testing
