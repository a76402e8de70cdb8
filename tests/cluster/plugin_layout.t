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

# shellcheck source=tests/cluster/layout_lib.sh
. "$(dirname "$0")/layout_lib.sh"
make_show

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
if slurm_at_least 23.11; then # it wants 20 CPUs for each, whatever -O says, and has 64
    capture sandbox_run srun --immediate=2 -N2 -n7 -O -c 20 true
    like "$err" "Unable to allocate resources" "overcommit does not make room for large tasks any more"
else
    right "overcommit with large tasks" 7 -N2 -n7 -O -c 20 -m cyclic
fi
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
mpis=(none)
if has_pmix; then
    mpis=(pmix none)
    right "arbitrary, as PMIx knows it" 3 -n3 -m arbitrary -w "$last,$first,$last"
fi
capture sandbox_run srun --hpc-train --mpi=none -n3 -m arbitrary -w "$last,$first,$last" sleep 60
ok "$([ "$status" != 0 ]; echo $?)" "arbitrary without a host file and without PMIx is refused"
like "$err" "nothing says which rank is where: name the hosts in a file .* SLURM_HOSTFILE, or use block" "the error says what to do"

# ---- layouts drawn at random, all in one job ----
# Each line of the plan is a number of srun options; what Slurm itself refuses, or still has not begun after 30 s, is
# left out.
tries=12
[ -z "${HPC_TRAIN_LONG-}" ] || tries=200
RANDOM=${HPC_TRAIN_SEED:-$(date +%s)}
seed=$RANDOM
RANDOM=$seed
pick() { echo "${@:1+RANDOM%$#:1}"; }
some_nodes() { all_nodes | shuf --random-source=<(yes "$RANDOM") | head -n "$1" | paste -sd,; }
job_tasks=8 # of the job on each node, with a CPU each
plan() {
    local i n options tasks per_node cpus
    for ((i = 0; i < tries; i++)); do
        n=$((1 + RANDOM % nodes))
        case $((RANDOM % 5)) in
        0) options="-w $(some_nodes "$n") -N$n" ;;
        1) [ "$n" -lt "$nodes" ] && options="-x $(some_nodes $((nodes - n))) -N$n" || options="-N$n" ;;
        2) options="-r$((nodes - n)) -N$n" ;;
        *) options="-N$n" ;;
        esac
        case $((RANDOM % 3)) in
        0) per_node=$((1 + RANDOM % 4)) options+=" --ntasks-per-node=$per_node" tasks=$((n * per_node)) ;;
        *) tasks=$((n + RANDOM % (6 * n))) options+=" -n$tasks" ;;
        esac
        cpus=$(pick '' '' -c1 -c2 -c3 -O '-O -c2')
        # A step of more CPUs than its job has waits for ever in 22.05.
        [[ $cpus != -c* ]] || [ $((tasks * ${cpus#-c})) -le $((n * job_tasks)) ] || cpus=-O
        options+=" $cpus"
        options+=" -m $(pick block cyclic plane=1 plane=2 plane=3 plane=5 '*' block:block cyclic:cyclic '*:cyclic' \
            block:cyclic,NoPack cyclic:fcyclic block,Pack)"
        options+=" --mpi=$(pick "${mpis[@]}")"
        echo "$options"
    done
    # arbitrary: hosts drawn one by one
    for ((i = 0; i < tries / 6; i++)); do
        n=$((2 + RANDOM % 6))
        echo "-m arbitrary -n$n --mpi=$(pick "${mpis[@]}") $(for ((j = 0; j < n; j++)); do some_nodes 1; done | paste -sd,)"
    done
}
plan >"$work_here/plan"
cat >"$work_here/run-plan" <<'END'
#!/bin/bash
unset SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_NTASKS SLURM_NPROCS # salloc's, which srun would take as options
i=0
while read -r -a options; do
    i=$((i + 1))
    if [ "${options[1]}" = arbitrary ]; then
        tr , '\n' <<<"${options[-1]}" >"$1/hosts.$i"
        unset "options[-1]"
        SLURM_HOSTFILE=$1/hosts.$i timeout 30 srun --hpc-train --overlap "${options[@]}" "$1/show" >"$1/random.$i" 2>"$1/random.$i.err" </dev/null
    else
        timeout 30 srun --hpc-train --overlap "${options[@]}" "$1/show" >"$1/random.$i" 2>"$1/random.$i.err" </dev/null
    fi
    echo $? >"$1/random.$i.rc"
done <"$1/plan"
END
sandbox_run --root sh -c "chmod 755 '$work/run-plan'; chmod 644 '$work/plan'"
run_limit=$((tries * 15))
capture sandbox_run salloc -N"$nodes" --ntasks-per-node=$job_tasks "$work/run-plan" "$work"
run_limit=120
waiting='step creation temporarily disabled\|Step created for job' # Slurm, of the step before
compared=0 i=0
while read -r options; do
    i=$((i + 1))
    grep -q "Unable to create step" "$work_here/random.$i.err" && continue # Slurm's own refusal
    compared=$((compared + 1))
    want=$(wc -l <"$work_here/random.$i")
    is "$(cat "$work_here/random.$i.rc") $(judge <"$work_here/random.$i") $(grep -v "$waiting" "$work_here/random.$i.err")" "0 $want tasks " "drawn with $seed: srun $options"
done <"$work_here/plan"
diag "$compared of $i layouts compared; Slurm itself refused the others"
ok "$([ "$compared" -ge $((i / 2)) ]; echo $?)" "half of the layouts and more could be compared"

# What a user sets to mislead is overwritten by srun.
capture sandbox_run env SLURM_STEP_TASKS_PER_NODE='7(x2)' SLURM_STEP_NODELIST=x SLURM_PMIX_MAPPING_SERV=y \
    srun --hpc-train -N2 -n2 "$work/show"
is "$(judge <<<"$out")" "2 tasks" "false SLURM_STEP_* in srun's own environment change nothing"
capture sandbox_run srun --hpc-train -N2 -n2 --export=ALL,SLURM_STEP_TASKS_PER_NODE='7(x2)' "$work/show"
is "$status $(judge <<<"$out")" "0 2 tasks" "nor variables set by --export"

# Nodes that are set up differently come to the same addresses.
range=/proc/sys/net/ipv4/ip_local_port_range
outgoing=$(on_node "$last" cat $range)
at_exit "on_node '$last' sh -c \"echo '$outgoing' >$range\""
on_node "$last" sh -c "echo 25000 60999 >$range"
capture sandbox_run srun --hpc-train -w "$first,$last" -N2 printenv JAX_COORDINATOR_ADDRESS
is "$status $(sort -u <<<"$out" | wc -l)" "0 1" "the ports do not depend on what a node says of its own"

done_testing
