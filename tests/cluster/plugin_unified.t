#!/bin/bash
# plugin_unified.t: with control groups of version 2, and tasks kept from the GPUs that Slurm did not give them
# (ConstrainDevices), as newer clusters have it, in a sandbox of its own: GPUs, staging that fails, results, what tasks leave.
# shellcheck disable=SC2001,SC2016,SC2154 # sed is meant; the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
unified=${top_builddir:-$top_srcdir/build}/tests/cluster/.libs/unified.so
[ -e "$unified" ] || skip_all "tests/cluster/unified.la is not built"
own_sandbox
mkdir -p "$own/shared/home/user"
cp "$unified" "$own/shared"
export HPC_TRAIN_UNIFIED=/shared/unified.so HPC_TRAIN_SLURM_CONF=$'ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup'
capture limit 60 "$sandbox" up 2
[[ $err != *"and this kernel has none"* ]] || skip_all "this kernel has no control groups of version 2"
ok "$status" "a sandbox with cgroup/v2 starts" || { diag "$err"; exit 1; }

capture sandbox_run srun -N2 --hpc-train grep ^0:: /proc/self/cgroup
is "$(grep -c '^0::/system.slice/node[01]_slurmstepd.scope/.*/step_0/user/task_' <<<"$out")" 2 "tasks are in control groups of version 2" || diag "$out$err"

# ---- GPUs ----
# A device that a task may open is not there (ENXIO), as nobody has made it; one that it may not is forbidden (EPERM).
cat >"$own/shared/gpus" <<'END2'
#!/bin/bash
may=
for i in 0 1; do [[ $(head -c 1 "/dev/gpu$i" 2>&1) == *"not permitted" ]] || may+=$i; done
echo "$SLURM_PROCID visible=$CUDA_VISIBLE_DEVICES may=$may own=${HPC_TRAIN_GPU-}"
END2
chmod 755 "$own/shared/gpus"
# gpus WANT SRUN-OPTION...: what each task sees, may open, and has as its own; without hpc-train the same but for its own.
gpus() {
    local bare
    bare=$(sandbox_run srun -N1 -w node0 "${@:2}" /shared/gpus | sort -n)
    capture sandbox_run srun -N1 -w node0 --hpc-train "${@:2}" /shared/gpus
    out=$(sort -n <<<"$out")
    is "$out" "$1" "srun ${*:2}: the task may open its own GPU" || diag "$err"
    is "$(sed 's/own=.*/own=/' <<<"$out")" "$bare" "the task sees the GPUs that Slurm assigned"
}
gpus $'0 visible=0 may=0 own=0' -n1 --gres=gpu:1
gpus $'0 visible=0,1 may=01 own=0\n1 visible=0,1 may=01 own=1' -n2 --gres=gpu:2
# Each task counts those that it may open, from 0.
gpus $'0 visible=0 may=0 own=0\n1 visible=0 may=1 own=0' -n2 --gpus-per-task=1
gpus $'0 visible= may= own=' -n1
sandbox_run srun -N1 -w node0 --gres=gpu:1 sleep 100 2>/dev/null &
other=$!
for ((i = 0; i < 300; i++)); do [ "$(sandbox_run squeue --noheader --states=RUNNING --format=%T)" = RUNNING ] && break; sleep 0.1; done
gpus $'0 visible=0 may=1 own=0' -n1 --gres=gpu:1
kill $other
wait $other 2>/dev/null
sandbox_run scancel --user=user

# ---- staging that fails ----
capture sandbox_run timeout 60 srun -N2 -n4 --hpc-train-stage=/nowhere sleep 50
is "$status" 66 "staging that fails ends srun with its status"
on_node node0 sh -c 'echo data >/tmp/here; chmod 644 /tmp/here'
capture sandbox_run timeout 60 srun -N2 -w node0,node1 -n4 --hpc-train-stage=/tmp/here --hpc-train-stage-mode=copy sleep 50
like "$status $err" "^137 .*node1: /tmp/here cannot be read: No such file" "on one node: reported, and running tasks are killed"

# ---- the copying is one of the step's processes, and what tasks leave behind is ended ----
head -c 200M /dev/zero >"$own/shared/zero" && chmod -R a+rX "$own/shared"
sandbox_run srun -N1 -w node0 --hpc-train-stage-out="res:/shared/home/user/%j" bash -c '
    mkdir "$SLURM_TMPDIR/res"; cp /shared/zero "$SLURM_TMPDIR/res"; echo "job=$SLURM_JOB_ID"
    cd "$SLURM_TMPDIR" && (setsid bash -c "exec 9>held >/dev/null 2>&1; sleep 300" &)' >"$own/output" 2>&1 &
step=$!
group=$(on_node node0 timeout 30 bash -c 'until pid=$(pgrep -f "hpc-train-stage --[o]ut") && [[ $(cat /proc/$pid/comm) = hpc-train-stage ]]; do :; done
    grep ^0:: /proc/$pid/cgroup')
wait $step
is "$?" 0 "a step with results, and with a process that stays behind"
job=$(job_of "$(cat "$own/output")")
like "$group" "_slurmstepd.scope/.*/step_0/user/task_" "the helper that copies them is in the cgroup of the step's processes"
cmp -s "$own/shared/zero" "$own/shared/home/user/$job/zero"
ok $? "all results exist when srun ends"
is_clean "$job" "a process left behind"
is "$(sandbox_run pgrep -u user -a sleep)" "" "the left process is killed"

# ---- others ----
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    tap_of plugin_out.t bash "$top_srcdir/tests/cluster/plugin_out.t"
else
    skip "all of plugin_out.t" "takes minutes: make check-long"
fi
"$sandbox" down >/dev/null
groups=$(unshare --mount sh -c 'mount -t cgroup2 none "$1" && find "$1" -maxdepth 1 -printf "%f\n"' groups "$own/mnt")
like "$groups" "^mnt" "the machine's control groups can be seen"
unlike "$groups" "hpc-train-sandbox-$(stat -c %i "$own/state")" "no cgroup of this cluster is left"
done_testing
