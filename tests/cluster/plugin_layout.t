#!/bin/bash
# plugin_layout.t: every layout that srun makes is described right, or refused with a message: what each task is told is
# compared with what Slurm itself says of it (SLURM_PROCID, SLURM_NODEID, SLURM_LOCALID and the node it runs on).

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
nodes=$(all_nodes | wc -l)

cat >"$work_here/show" <<'END'
#!/bin/bash
# one write per line, so that lines of several tasks do not mix
printf '%s %s %s %s %s %s %s %s\n' "$SLURM_PROCID" "$SLURM_NODEID" "$SLURM_LOCALID" "$SLURMD_NODENAME" \
    "$HPC_TRAIN_RANK" "$HPC_TRAIN_NODE_RANK" "$HPC_TRAIN_LOCAL_RANK" "$HPC_TRAIN_CONFIG"
END
sandbox_run --root chmod 755 "$work/show"

# Reads the tasks' lines; prints what does not agree, or "N tasks" when all does.
judge() {
    awk '
    {
        n++
        if ($1 != $5 || $2 != $6 || $3 != $7) print "task", $1, $2, $3, "was told", $5, $6, $7
        list = $8
        sub(/.*"worker":\[/, "", list)
        sub(/\].*/, "", list)
        gsub(/"/, "", list)
        if (all == "") all = list
        if (list != all) print "rank", $1, "has another list:", list, "not", all
        host[$1] = $4
    }
    END {
        size = split(all, address, ",")
        if (size != n) print n, "tasks,", size, "addresses"
        for (i = 1; i <= size; i++) {
            split(address[i], part, ":")
            if (part[1] != host[i - 1]) print "rank", i - 1, "is on", host[i - 1], "but its address is", address[i]
            if (seen[address[i]]++) print "address", address[i], "is given twice"
        }
        print n, "tasks"
    }'
}

right() { # NAME TASKS SRUN-OPTION...
    capture sandbox_run "${prefix[@]}" srun --hpc-train "${@:3}" "$work/show"
    is "$(judge <<<"$out")" "$2 tasks" "$1: srun ${*:3}"
}

prefix=()
for ((n = 1; n <= nodes && n <= 4; n++)); do
    for distribution in block cyclic plane=2 plane=3; do
        for tasks in $n $((2 * n + 1)) $((3 * n)); do
            right layout "$tasks" -N"$n" -n"$tasks" -m "$distribution"
        done
    done
done
[ "$nodes" -lt 3 ] || right uneven 7 -N3 -n7
right "tasks per node" 6 -N2 --ntasks-per-node=3
right overcommit 9 -N2 -n9 -O -m cyclic
right "overcommit with large tasks" 7 -N2 -n7 -O -c 20 -m cyclic
for distribution in '*' cyclic:block block:cyclic '*:cyclic' block,NoPack block:block,Pack 'cyclic:*'; do
    right "second levels" 5 -N2 -n5 -m "$distribution"
done
prefix=(env SLURM_DISTRIBUTION=cyclic)
right "from the environment" 5 -N2 -n5
prefix=()
right "without exported variables" 3 -N2 -n3 --export=NONE
right "with another MPI" 3 -N2 -n3 --mpi=none

# Steps smaller than the job, other nodes of it, another order of the names.
prefix=(salloc -N"$nodes" --ntasks-per-node=4)
last=$(all_nodes | tail -n 1)
first=$(all_nodes | head -n 1)
right "part of the job" 3 -N1 -n3 -w "$last"
right "without a node" $((nodes - 1)) -N$((nodes - 1)) -n$((nodes - 1)) --exclude="$first" -m cyclic
right "from the second on" $((nodes - 1)) -r1 -N$((nodes - 1)) -n$((nodes - 1))
right "nodes given in reverse" 4 -N2 -n4 -w "$last,$first" -m cyclic

# Arbitrary layouts: right with a host file, else refused.
printf '%s\n' "$last" "$first" "$last" "$last" "$first" >"$work_here/hosts"
sandbox_run --root chmod 644 "$work/hosts"
prefix=(env "SLURM_HOSTFILE=$work/hosts")
right arbitrary 5 -n5 -m arbitrary
prefix=()
capture sandbox_run srun --hpc-train -n3 -m arbitrary -w "$last,$first,$last" sleep 60
ok "$([ "$status" != 0 ]; echo $?)" "arbitrary without a host file is refused"
like "$err" "nothing says which rank is where: name the hosts in a file .* SLURM_HOSTFILE, or use block" "and says what to do"

# Heterogeneous steps are refused; a component by itself is right.
start=$SECONDS
capture sandbox_run srun --hpc-train -N1 -n1 sleep 60 : -N1 -n2 sleep 60
ok "$([ "$status" != 0 ] && [ $((SECONDS - start)) -lt 40 ]; echo $?)" "a step over components is refused"
like "$err" "steps over several components of a heterogeneous job cannot be prepared" "and says why"

# What a user sets to mislead is noticed, not believed.
capture sandbox_run srun --hpc-train -N2 -n2 --export=ALL,SLURM_STEP_TASKS_PER_NODE='7(x2)' true
like "$status $err" "^0 |do not agree|do not set SLURM" "a false SLURM_STEP_TASKS_PER_NODE is overwritten or refused"

# Nodes that are set up differently come to the same addresses.
range=/proc/sys/net/ipv4/ip_local_port_range
outgoing=$(on_node "$last" cat $range)
at_exit "on_node '$last' sh -c \"echo '$outgoing' >$range\""
on_node "$last" sh -c "echo 25000 60999 >$range"
capture sandbox_run srun --hpc-train -w "$first,$last" -N2 printenv JAX_COORDINATOR_ADDRESS
is "$status $(sort -u <<<"$out" | wc -l)" "0 1" "the ports do not depend on what a node says of its own"

done_testing
