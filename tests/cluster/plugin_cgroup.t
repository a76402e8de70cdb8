#!/bin/bash
# plugin_cgroup.t: with proctrack/cgroup, as clusters have it (the common sandbox follows processes by their parents), in a
# sandbox of its own: a step whose staging fails, results, what tasks leave behind. In `make check-long` also the time limit, and
# other tests whole there; plugin_unified.t has plugin_out.t in `make check`.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
export HPC_TRAIN_SLURM_CONF=ProctrackType=proctrack/cgroup
capture limit 60 "$sandbox" up ${HPC_TRAIN_LONG:+4} # plugin_jobs.t wants more
[[ $err != *"needs the freezer"* ]] || skip_all "this kernel has no freezer of control groups, version 1"
ok "$status" "a sandbox with proctrack/cgroup starts" || { diag "$err"; exit 1; }

# ---- before the first job ----
for node in node0 node1; do
    is "$(on_node "$node" stat -c '%U %a' /tmp/hpc-train)" "root 711" "$node: the parent of the job directories is there already, and root's"
done
capture sandbox_run srun -N2 sh -c 'mkdir /tmp/hpc-train'
like "$status $err" "^1 .*File exists.*File exists" "users cannot create it first"
capture sandbox_run srun -N2 --hpc-train grep freezer /proc/self/cgroup
like "$out" "/slurm_node[01]/.*/step_0" "tasks are in control groups"

# ---- staging that fails ----
capture sandbox_run timeout 60 srun -N2 -n4 --hpc-train-stage=/nowhere sleep 50
is "$status" 66 "staging that fails ends srun with its status"
on_node node0 sh -c 'echo data >/tmp/here; chmod 644 /tmp/here'
capture sandbox_run timeout 60 srun -N2 -w node0,node1 -n4 --hpc-train-stage=/tmp/here --hpc-train-stage-mode=copy sleep 50
like "$status $err" "^137 .*node1: /tmp/here cannot be read: No such file" "on one node: reported, and running tasks are killed"
like "$err" "node1: task 3: Exited with exit code 66" "the failed task keeps its status"

# ---- the copying is one of the step's processes, and what tasks leave behind is ended ----
mkdir -p "$own/shared/home/user" && head -c 200M /dev/zero >"$own/shared/zero" && chmod -R a+rX "$own/shared"
# shellcheck disable=SC2016
sandbox_run srun -N1 -w node0 --hpc-train-stage-out="res:/shared/home/user/%j" bash -c '
    mkdir "$SLURM_TMPDIR/res"; cp /shared/zero "$SLURM_TMPDIR/res"; echo "job=$SLURM_JOB_ID"
    cd "$SLURM_TMPDIR" && (setsid bash -c "exec 9>held >/dev/null 2>&1; sleep 300" &)' >"$own/output" 2>&1 &
step=$!
# shellcheck disable=SC2016
group=$(on_node node0 timeout 30 bash -c 'until pid=$(pgrep -f "hpc-train-stage --[o]ut") && [[ $(cat /proc/$pid/comm) = hpc-train-stage ]]; do :; done
    grep freezer /proc/$pid/cgroup')
wait $step
is "$?" 0 "a step with results, and with a process that stays behind"
job=$(job_of "$(cat "$own/output")")
like "$group" "/job_$job/step_0" "the helper that copies them is in the step's cgroup"
cmp -s "$own/shared/zero" "$own/shared/home/user/$job/zero"
ok $? "all results exist when srun ends"
is_clean "$job" "a process left behind"
is "$(sandbox_run pgrep -u user -a sleep)" "" "the left process is killed"

# ---- others ----
tests=
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    # shellcheck disable=SC2016
    capture sandbox_run srun -N2 --time=1 --hpc-train-stage-out="res:/shared/home/user/limit.%n" sh -c \
        'mkdir "$SLURM_TMPDIR/res"; echo "job=$SLURM_JOB_ID" >"$SLURM_TMPDIR/res/file"; cat "$SLURM_TMPDIR/res/file"; sleep 200'
    like "$status $err" "^[1-9].*DUE TO TIME LIMIT" "a step at its time limit"
    is "$(cat "$own"/shared/home/user/limit.[01]/file | sort -u)" "job=$(job_of "$out")" "its results are copied"
    is_clean "$(job_of "$out")" "time limit"
    tests="plugin_out.t plugin_stage.t plugin_safety.t plugin_jobs.t plugin_life.t"
else
    skip "the time limit, and other tests" "take minutes: make check-long"
fi
for test in $tests; do
    HPC_TRAIN_LIFE_TIMES=2 tap_of "$test" bash "$top_srcdir/tests/cluster/$test"
done
"$sandbox" down >/dev/null
# shellcheck disable=SC2016
groups=$(unshare --mount sh -c 'mount -t cgroup -o freezer freezer "$1" && find "$1" -maxdepth 1 -printf "%f\n"' groups "$own/mnt")
like "$groups" "^mnt" "the machine's control groups can be seen"
unlike "$groups" "hpc-train-sandbox-$(stat -c %i "$own/state")" "no cgroup of this cluster is left"

done_testing
