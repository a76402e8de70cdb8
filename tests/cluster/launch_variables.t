#!/bin/bash
# hpc-train launch with each variable that srun reads as an option (srun(1), INPUT ENVIRONMENT VARIABLES), with layouts and GPUs of
# all kinds: a restart, and one with a node less, have the tasks, the GPUs and the variables of the first run. One after the other
# with HPC_TRAIN_LONG.
# shellcheck disable=SC2154,SC2016,SC2034
. "${top_srcdir:-.}/tests/cluster/lib.sh"
on_cluster 3
sandbox_run hpc-train --version >/dev/null 2>&1 || skip_all "hpc-train is not installed on the cluster: ./quickstart up"
run_limit=60

# Tasks on node2 fail, once all have said where they are: run 1 has the nodes of run 0, run 2 one less.
cat >"$work_here/program" <<'END'
#!/bin/bash
said=FOLDER/said.$SLURM_JOB_ID.$HPC_TRAIN_RESTART
echo "@$HPC_TRAIN_RESTART $(hostname) $HPC_TRAIN_RANK/$HPC_TRAIN_WORLD_SIZE gpus=$CUDA_VISIBLE_DEVICES own=$OWN"
touch "$said.$HPC_TRAIN_RANK"
until [ "$(ls "$said".* | wc -l)" = "$HPC_TRAIN_WORLD_SIZE" ]; do sleep 0.1; done
[ "$(hostname)" != node2 ] || exit 3
sleep 1
END
sed -i "s|FOLDER|$work|" "$work_here/program"
chmod 755 "$work_here/program"
launch="hpc-train launch --mpi=none --hpc-train --restarts 3"

# submit NAME OPTION-OF-SBATCH… -- LINE…: a job on nodes 0 to 2 that runs these lines; its output ends with their exit status.
submit() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    printf '%s\n' '#!/bin/bash' "cd '$work'; OWN=own; export OWN" "${@:2}" 'echo "launch: $?"' >"$work_here/$name.sbatch"
    sandbox_run sbatch -Q -w 'node[0-2]' -N3 --oversubscribe --no-kill --no-requeue -o "$work/$name.out" "${options[@]}" "$work/$name.sbatch" >/dev/null
}
# await NAME: until it has ended; $out is what it has printed.
await() {
    local end=$((SECONDS + run_limit))
    until grep -q '^launch: ' "$work_here/$1.out" 2>/dev/null || [ $SECONDS -ge $end ]; do sleep 0.2; done
    out=$(cat "$work_here/$1.out")
}
# said RUN: what its tasks have printed.
said() { grep -o "@$1 .*" <<<"$out" | sort; }
# tasks RUN: node and rank of each.
tasks() { said "$1" | sed -E 's/^@. (node[0-9]) ([0-9]*)\/([0-9]*) .*/\2:\1/' | sort -n | xargs; }

# ---- each variable ----
# NAME VALUE GROUP: those of a group are tried together. What launch does:
#   a-e  left to srun, and a restart is as the first run
#   j, k the same, read for allocations only
#   made launch's own options win: nodes, tasks, where files are written
#   own  below, or in launch.t
#   -    srun refuses it here, or waits for what there is not, for the first run as well
cat >"$work_here/table" <<'END'
PMI_FANOUT 16 a
PMI_FANOUT_OFF_HOST 1 a
PMI_TIME 100 a
SLURM_ACCOUNT none j
SLURM_ACCTG_FREQ 30 a
SLURM_BCAST /tmp/launch-bcast b
SLURM_BCAST_EXCLUDE NONE b
SLURM_BURST_BUFFER x j
SLURM_CLUSTERS all -
SLURM_COMPRESS lz4 b
SLURM_CONF /etc/slurm/slurm.conf a
SLURM_CONSTRAINT none -
SLURM_CORE_SPEC 0 l
SLURM_CPU_BIND none a
SLURM_CPU_FREQ_REQ high a
SLURM_CPUS_PER_GPU 1 g
SLURM_CPUS_PER_TASK 1 a
SLURM_DEBUG 0 a
SLURM_DEBUG_FLAGS NO_CONF_HASH b
SLURM_DELAY_BOOT 1 j
SLURM_DEPENDENCY singleton j
SLURM_DISABLE_STATUS 1 a
SLURM_DIST_PLANESIZE 2 c
SLURM_DISTRIBUTION plane c
SLURM_EPILOG none a
SLURM_EXACT 1 d
SLURM_EXCLUSIVE exclusive c
SLURM_EXIT_ERROR 75 a
SLURM_EXIT_IMMEDIATE 75 a
SLURM_EXPORT_ENV NONE own
SLURM_GPU_BIND none g
SLURM_GPU_FREQ low g
SLURM_GPUS 6 own
SLURM_GPUS_PER_NODE 1 g
SLURM_GPUS_PER_TASK 1 own
SLURM_GRES gpu:1 g
SLURM_GRES_FLAGS disable-binding g
SLURM_HINT nomultithread d
SLURM_IMMEDIATE 5 a
SLURM_JOB_ID 1 own
SLURM_JOB_NAME name j
SLURM_JOB_NUM_NODES 3 made
SLURM_KILL_BAD_EXIT 0 own
SLURM_LABELIO 1 d
SLURM_MEM_BIND none a
SLURM_MEM_PER_CPU 10 a
SLURM_MEM_PER_GPU 10 g
SLURM_MEM_PER_NODE 10 b
SLURM_MPI_TYPE none a
SLURM_NETWORK none j
SLURM_NNODES 3 made
SLURM_NO_KILL set made
SLURM_NPROCS 6 made
SLURM_NTASKS 6 made
SLURM_NTASKS_PER_CORE 1 e
SLURM_NTASKS_PER_GPU 1 own
SLURM_NTASKS_PER_NODE 2 made
SLURM_NTASKS_PER_SOCKET 1 e
SLURM_OPEN_MODE truncate made
SLURM_OVERCOMMIT 1 b
SLURM_OVERLAP 1 b
SLURM_PARTITION none k
SLURM_PMI_KVS_NO_DUP_KEYS 1 a
SLURM_POWER level k
SLURM_PROFILE none a
SLURM_PROLOG none a
SLURM_QOS none k
SLURM_REMOTE_CWD /tmp c
SLURM_REQ_SWITCH 1 k
SLURM_RESERVATION none k
SLURM_RESV_PORTS 0 a
SLURM_SEND_LIBS no b
SLURM_SIGNAL USR1@60 a
SLURM_SPREAD_JOB 1 k
SLURM_SRUN_REDUCE_TASK_EXIT_MSG 1 c
SLURM_STDERRMODE all d
SLURM_STDINMODE none d
SLURM_STDOUTMODE all d
SLURM_STEP_GRES gres:gpu:1 g
SLURM_STEP_KILLED_MSG_NODE_ID 1 d
SLURM_TASK_EPILOG /bin/true c
SLURM_TASK_PROLOG /bin/true c
SLURM_TEST_EXEC 1 c
SLURM_THREAD_SPEC 0 -
SLURM_THREADS 4 d
SLURM_THREADS_PER_CORE 1 e
SLURM_TIMELIMIT 5 c
SLURM_UMASK 0022 c
SLURM_UNBUFFEREDIO 1 d
SLURM_USE_MIN_NODES 1 k
SLURM_WAIT 60 d
SLURM_WAIT4SWITCH 1 k
SLURM_WCKEY none k
SLURM_WORKING_DIR /tmp e
SLURMD_DEBUG 0 a
SRUN_CONTAINER /none own
SRUN_CPUS_PER_TASK 1 d
SRUN_ERROR all d
SRUN_EXPORT_ENV NONE own
SRUN_INPUT none d
SRUN_OUTPUT all d
END
# What later releases do not have, or keep for root.
! slurm_at_least 23.02 || sed -i '/^SLURM_POWER \|^SLURMD_DEBUG /d' "$work_here/table"
manual=$(man -w srun 2>/dev/null) && unknown=$(gzip -cdf "$manual" | sed -n '/^\.SH "INPUT ENV/,/^\.SH "OUTPUT ENV/p' |
    sed -nE 's/^\\fB((PMI|SLURMD?|SRUN)_[A-Z0-9_]*).*/\1/p' | grep -vFwf <(cut -d' ' -f1 "$work_here/table") | xargs)
is "${unknown-}" "" "the table has each variable of srun's manual page"
# exports PATTERN: those lines of the table, to be set.
exports() { sed -nE "s/^([A-Z0-9_]*) (.*) ($1)\$/export \1=\2/p" "$work_here/table"; }
groups="a b c d e g j k l made"
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    cluster_end=$((SECONDS + 3600))
    groups=$(sed -nE 's/ [^ ]* ([a-egj-l]|made)$//p' "$work_here/table" | xargs)
fi
for group in $groups; do
    lines=$(exports "$group")
    [ -n "$lines" ] || lines=$(exports '[a-z]+' | grep -w "$group")
    [ "$group" != SLURM_DIST_PLANESIZE ] || lines+=$'\nexport SLURM_DISTRIBUTION=plane'
    gpus=()
    [[ $group != g && $group != *GPU* && $group != *GRES* ]] || gpus=(--gpus-per-node=2)
    submit "group-$group" --ntasks-per-node=2 "${gpus[@]}" -- "$lines" "$launch -- $work/program"
done

# ---- GPUs, layouts, exports ----
submit gpus --gpus=6 --ntasks-per-node=1 -- "$launch -- ./program"
submit by-gpu --gpus=6 --ntasks-per-gpu=1 -- "$launch -- ./program"
submit per-task --gpus-per-node=2 --ntasks-per-node=2 -- "export SLURM_GPUS_PER_TASK=1; $launch -- ./program"
submit other-gpus --gpus=4 --ntasks-per-node=1 -- "$launch -- ./program"
submit uneven -n5 -- "$launch -- ./program"
submit cyclic --ntasks-per-node=2 -- "export SLURM_DISTRIBUTION=cyclic; $launch -n5 --exclusive -- ./program"
printf 'node1\nnode0\nnode1\nnode2\n' >"$work_here/hosts"
submit hostfile -n6 -- "export SLURM_HOSTFILE=$work/hosts; $launch -n4 -- ./program"
submit list -n6 -- "export SLURM_EXPORT_ENV=NONE SLURM_ARBITRARY_NODELIST=node1,node0,node1,node2; $launch -m arbitrary -n4 -- $work/program"
submit export -n3 -- "SLURM_EXPORT_ENV=NONE SRUN_EXPORT_ENV=ALL $launch -- ./program"
submit none -n3 -- "SLURM_EXPORT_ENV=ALL SRUN_EXPORT_ENV=NONE $launch -- $work/program"
submit goes-on -n3 -- "SLURM_KILL_BAD_EXIT=0 SLURM_NO_KILL=set $launch -- ./program"

# ---- what it ends with ----
submit seven -n3 -- "$launch --restarts 0 -- bash -c '[ \$RANK = 1 ] && exit 7; sleep 60'"
submit signal -n3 -- "$launch --restarts 0 -- bash -c '[ \$RANK = 1 ] && kill -SEGV \$\$; sleep 60'"
printf '#!/no/such/python\n' >"$work_here/script" && chmod 755 "$work_here/script"
submit nosuch -n3 -- "$launch -- ./no-such-program"
submit script -n3 -- "$launch --label -- ./script"
submit folder -n3 -- "$launch -- /etc"
submit elsewhere -n3 -- "$launch --output nosuch.txt -- no-such-program"

for group in $groups; do
    await "group-$group"
    is "$(tasks 0), $(tasks 1), $(tasks 2), ${out##*$'\n'}" "0:node0 1:node0 2:node1 3:node1 4:node2 5:node2, $(
    )0:node0 1:node0 2:node1 3:node1 4:node2 5:node2, 0:node0 1:node0 2:node1 3:node1, launch: 0" "variables $group" || diag "$out"
done
all_gpus() { said "$1" | cut -d' ' -f4 | sort | uniq -c | xargs; }
await gpus
is "$(all_gpus 0), $(all_gpus 1), $(all_gpus 2), ${out##*$'\n'}" "3 gpus=0,1, 3 gpus=0,1, 2 gpus=0,1, launch: 0" \
    "#SBATCH --gpus=6: each node keeps its two" || diag "$out"
for name in by-gpu per-task; do
    await $name
    is "$(all_gpus 0), $(all_gpus 1), $(all_gpus 2), ${out##*$'\n'}" "3 gpus=0 3 gpus=1, 3 gpus=0 3 gpus=1, 2 gpus=0 2 gpus=1, launch: 0" \
        "GPUs $name: each task keeps one" || diag "$out"
done
await other-gpus
like "$out" "SLURM_GPUS=4 is a number for all nodes, .*--gpus-per-node.*launch: 78" "GPUs that are not the same number on each node are refused"
await uneven
is "$(tasks 1), $(tasks 2), ${out##*$'\n'}" "0:node0 1:node0 2:node0 3:node1 4:node2, 0:node0 1:node0 2:node0 3:node1, launch: 0" \
    "uneven tasks: each node keeps its number" || diag "$out"
await cyclic
is "$(tasks 1), $(tasks 2), ${out##*$'\n'}" "0:node0 1:node1 2:node2 3:node0 4:node1, 0:node0 1:node1 2:node0 3:node1, launch: 0" \
    "the same by turns, with --exclusive" || diag "$out"
for name in hostfile list; do
    await $name
    is "$(tasks 0), $(tasks 1), $(tasks 2), ${out##*$'\n'}" "0:node1 1:node0 2:node1 3:node2, 0:node1 1:node0 2:node1 3:node2, 0:node1 1:node0 2:node1, launch: 0" \
        "arbitrary ($name): each task that is left keeps its node" || diag "$out"
done
await export
is "$(said 1 | grep -c own=own) ${out##*$'\n'}" "3 launch: 0" "SRUN_EXPORT_ENV overrides SLURM_EXPORT_ENV" || diag "$out"
await none
is "$(said 2 | grep -c 'own=$') ${out##*$'\n'}" "2 launch: 0" "and its NONE leaves what launch sets" || diag "$out"
await goes-on
is "$(tasks 0), $(tasks 1), ${out##*$'\n'}" "0:node0 1:node1 2:node2, , launch: 3" "SLURM_KILL_BAD_EXIT=0 is --kill-on-bad-exit=0" || diag "$out"
await seven
is "${out##*$'\n'}" "launch: 7" "the exit status is that of the task that failed first" || diag "$out"
await signal
is "${out##*$'\n'}" "launch: 139" "and its signal" || diag "$out"
for name in nosuch:no-such-program: script:python folder:/etc: elsewhere:no-such-program; do
    await "${name%%:*}"
    like "$out" "the program cannot be started.*${name#*:}.*launch: 66" "a program that no node can start is refused: ${name%%:*}"
    unlike "$out" "starting again|left out" "and no node is blamed"
done
done_testing
