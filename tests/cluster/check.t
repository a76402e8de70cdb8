#!/bin/bash
# `hpc-train check` and `fit --check` on four nodes: healthy ones are not named; a node whose core others use, one with a CPU
# limit, one with a slow link and one that stops are, with the reason.
# shellcheck disable=SC2154,SC2086 # several words
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 4
need_training
nodes="-N4 -w node[0-3]"
check="hpc-train check --json $work/check.json"

# json EXPRESSION: what python makes of the file, as `j`
json() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work_here/check.json" "$1"; }
# stop PROGRAM: ends this test's processes that run it.
stop() { for pid in $(processes "$1"); do kill "$pid"; done; }
# shell_pid RANK: the shell that will be that rank; has_shell RANK: whether there is one.
shell_pid() {
    local pid
    for pid in $(processes bash); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$1"; then echo "$pid"; fi
    done
}
has_shell() { [ -n "$(shell_pid "$1")" ]; }
has_loops() { [ "$(processes perl | wc -l)" = 16 ]; }
# is_named NODE FIGURE STATUS: that node alone has that figure slow.
is_named() {
    is "$3" 69 "$1, slow $2: exit code 69" || diag "$err"
    is "$(grep -oE "^node[0-9] is slow: $2 " <<<"$out")" "$1 is slow: $2 " "$1, slow $2: it alone is named for that" || diag "$out"
    like "$err" "hpc-train: [0-9] of 4 nodes (is|are) slow: .*$1" "$1, slow $2: the message names it"
    is "$(grep -c '^hpc-train: ' <<<"$err")" 1 "$1, slow $2: said once"
}

# ---- healthy ---------------------------------------------------------------------------------------------------------
# Other tests on this machine may slow down one node and not the others, but hardly the same one three times.
for ((tries = 1; tries <= 3; tries++)); do
    capture sandbox_run $launch $nodes $check
    [ "$status" = 69 ] || break
    diag "$out"
done
is "$status" 0 "healthy nodes are not named" || diag "$err"
for node in 0 1 2 3; do
    is "$(grep -cE "^node$node +1( +[0-9.]+){5}( |$)" <<<"$out")" 1 "a row for node$node"
done
is "$(json '[n["node"] for n in j["nodes"]]')" "['node0', 'node1', 'node2', 'node3']" "the file has the nodes"
is "$(json 'all(n[k] > 0 for n in j["nodes"] for k in j["median"])')" True "and all figures of each"
is "$(json '[len(j["links"]), sorted(map(tuple, (l["nodes"] for l in j["links"])))[0], j["slow"]]')" "[6, ('node0', 'node1'), []]" "and each link once"
for way in "--mpi=none --hpc-train" "--ntasks-per-node=2 --hpc-train"; do
    capture sandbox_run ${launch%% *} $way $nodes $check
    like "$status" '^(0|69)$' "$way: it is measured" || diag "$err"
    is "$(json '[len(j["nodes"]), len(j["links"])]')" "[4, 6]" "$way: four nodes"
done

# ---- a core that others use ------------------------------------------------------------------------------------------
if [ "$(nproc)" -ge 2 ]; then
    # Each in a session of its own: kernels with autogroups divide a core among sessions.
    sandbox_run perl -e "use POSIX; fork for 1 .. 4; POSIX::setsid(); 1 while 1; # $work" 2>/dev/null &
    at_exit "stop perl"
    wait_for has_loops
    for pid in $(processes perl); do taskset -p 1 "$pid" >/dev/null; done
    capture sandbox_run $launch $nodes bash -c "cpu=1; [ \$SLURM_NODEID != 1 ] || cpu=0; exec taskset -c \$cpu $check"
    stop perl
    is_named node1 compute "$status"
    like "$out" "node1 is slow: compute [^:]*, the median is [^:]*: .*other processes used [0-9.]+ of its 1 CPUs, most perl" "the reason is told"
    like "$(json '[n["state"] for n in j["nodes"] if "compute" in n["slow"]]')" "most perl" "the file has it, too"
else
    skip "a core that others use" "one CPU"
fi

# ---- a CPU limit -----------------------------------------------------------------------------------------------------
groups=/sys/fs/cgroup/cpu
if [ -w $groups/tasks ] && mkdir $groups/hpc-train-check.$$ && echo 5000 >$groups/hpc-train-check.$$/cpu.cfs_quota_us; then
    at_exit "rmdir $groups/hpc-train-check.$$"
    # Each task waits until it is in its group; a node of the sandbox has no control groups of its own to be seen.
    sandbox_run --root srun ${launch#srun} $nodes unshare --mount bash -c "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu &&
        mount -t cgroup -o cpu none /sys/fs/cgroup/cpu && until [ -e $work/go ]; do sleep 0.1; done; exec $check" >"$work_here/out" 2>"$work_here/err" &
    began=$!
    wait_for has_shell 3
    shell_pid 3 >$groups/hpc-train-check.$$/cgroup.procs
    touch "$work_here/go"
    mark
    finish
    is_named node3 compute "$status"
    like "$out" "node3 is slow: compute [^:]*: .*the CPU limit of its cgroup throttled it in [0-9]+ of [0-9]+ periods" "the reason is told"
else
    skip "a CPU limit" "no control groups, version 1, of the CPU controller"
fi

# ---- a slow link -----------------------------------------------------------------------------------------------------
sandbox_run --root tc qdisc add dev node2 root tbf rate 20mbit burst 256k latency 50ms
at_exit "sandbox_run --root tc qdisc del dev node2 root 2>/dev/null"
capture sandbox_run $launch $nodes $check
is_named node2 link "$status"
like "$(json 'j["slow"]')" "node2" "the file names it"
capture sandbox_run $launch $nodes $fit --data "$data" --steps-per-epoch 2 --check
is "$status" 69 "fit --check: a run on it is refused" || diag "$err"
like "$out" "node2 is slow: link " "fit --check prints the table"
unlike "$out" "Epoch" "no step is made"
like "$err" "hpc-train: [0-9] of 4 nodes (is|are) slow: .*node2" "fit --check names it"
capture sandbox_run $launch $nodes $fit --data "$data" --steps-per-epoch 2 --check --verbose 0
is "$status$out" 69 "--verbose 0: no table"
printf '%s\n' '#!/bin/bash' "exec hpc-train launch${launch#srun} $nodes -- $fit --data $data --steps-per-epoch 2 --verbose 2 --check" >"$work_here/job"
chmod +x "$work_here/job"
capture sandbox_run salloc -Q -N4 -w node[0-3] "$work/job"
is "$status" 0 "under hpc-train launch it goes on" || diag "$err"
like "$err" "hpc-train launch: node2 is left out: it is slow" "without the slow node" || diag "$err"
like "$out" "Epoch 1/" "on the others"
sandbox_run --root tc qdisc del dev node2 root

# ---- a node that stops -----------------------------------------------------------------------------------------------
mark
sandbox_run $launch $nodes env HPC_TRAIN_DEBUG=comm $check >"$work_here/out" 2>"$work_here/err" &
began=$!
wait_for grep -q "rank 2 of 4 .*connected" "$work_here/err"
kill -STOP "$(rank_pid 2)"
finish
like "$err" "rank 2 on node2 was lost" "a node that stops is named"
is "$out" "" "nothing is printed of the others"
ok "$(wait_for none_left; echo $?)" "no process is left"

# ---- parameter servers -----------------------------------------------------------------------------------------------
capture sandbox_run srun --hpc-train --hpc-train-roles=ps:1,worker:3 $nodes hpc-train fit --model mnist-cnn --data "$data" --strategy parameter-server --check
is "$status" 64 "fit --check with parameter servers: 64"
like "$err" "--check is not for --strategy parameter-server: it compares nodes whose ranks step together" "and why"
capture sandbox_run srun --hpc-train --hpc-train-roles=ps:1,worker:3 $nodes $check
is "$status" 78 "check among parameter servers: 78, as for all that step together"
done_testing
