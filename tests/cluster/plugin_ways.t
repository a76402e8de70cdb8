#!/bin/bash
# plugin_ways.t: ways of asking for CPUs and GPUs, of passing the environment and of starting mpirun that differ between
# releases of Slurm: what tasks have with hpc-train is compared with what Slurm itself gives them and says of the step.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin

script() { # NAME LINE...
    printf '%s\n' '#!/bin/bash' "${@:2}" >"$work_here/$1"
    chmod 755 "$work_here/$1"
}
# refused REGEX NAME COMMAND...: what a release does not have.
refused() {
    capture sandbox_run "${@:3}"
    like "$status $err" "^[1-9].*$1" "$2"
}

# ---- the CPUs of a task ----
# Each step of one task says the CPUs that Slurm has given to the step, those of a task if Slurm says so, and the threads
# that hpc-train computes with there. Nothing binds the tasks here, so that the cores of the machine are the other limit.
cores=$(lscpu --parse=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)
script cpus 'cpus=$(scontrol show step "$SLURM_JOB_ID.$SLURM_STEP_ID" | grep -o "CPUs=[0-9]*")' \
    'rm -f "$0.json"; hpc-train bench --model mnist-cnn --batch-size 1 --steps 1 --summary-json "$0.json" >/dev/null || exit' \
    'threads=$(sed -n "s/^ *\"threads\": \([0-9]*\).*/\1/p" "$0.json")' \
    'echo "$cpus task=${SLURM_CPUS_PER_TASK-} threads=$threads"'
given() { # CPUS-OF-STEP CPUS-OF-TASK THREADS: as `cpus` says it
    echo "CPUs=$1 task=$2 threads=$(($3 < cores ? $3 : cores))"
}
is "$(sandbox_run srun --mpi=none -N1 -n1 --hpc-train "$work/cpus")" "$(given 1 '' 1)" "a task without -c has one CPU and computes with one thread"
for c in 1 2 3; do
    is "$(sandbox_run srun --mpi=none -N1 -n1 -c $c --hpc-train "$work/cpus")" "$(given $c $c $c)" "srun -c$c"
    is "$(sandbox_run srun --mpi=none -N1 -n1 -c $c --threads-per-core=1 --hpc-train "$work/cpus")" "$(given $c $c $c)" "srun -c$c --threads-per-core=1"
done
# From 23.11 on srun takes -c from sbatch. Before, it does not, but its tasks have sbatch's SLURM_CPUS_PER_TASK.
script job "srun --mpi=none -n1 $work/cpus" "srun --mpi=none -n1 --exact $work/cpus" "srun --mpi=none -n1 -c1 $work/cpus" \
    "SRUN_CPUS_PER_TASK=\$SLURM_CPUS_PER_TASK srun --mpi=none -n1 $work/cpus"
if slurm_at_least 23.11; then
    want=$(given 2 2 2)$'\n'$(given 2 2 2)
else
    want=$(given 4 2 2)$'\n'$(given 1 2 1)
fi
want+=$'\n'$(given 1 1 1)$'\n'$(given 2 2 2)
capture sandbox_run sbatch --wait --hpc-train -N1 -n2 -c2 --output="$work/o.job" "$work/job"
is "$(cat "$work_here/o.job")" "$want" "sbatch -c2: steps without -c, --exact, with -c1, with SRUN_CPUS_PER_TASK=2"
capture sandbox_run salloc --quiet --hpc-train -N1 -n2 -c2 "$work/job"
is "$out" "$want" "salloc -c2: the same"
if slurm_at_least 23.11; then
    is "$(sandbox_run srun --mpi=none -N1 -n1 --tres-per-task=cpu:2 --hpc-train "$work/cpus")" "$(given 2 2 2)" "srun --tres-per-task=cpu:2"
    capture sandbox_run sbatch --wait --hpc-train -N1 -n2 --tres-per-task=cpu:2 --output="$work/o.tres" "$work/job"
    is "$(cat "$work_here/o.tres")" "$want" "sbatch --tres-per-task=cpu:2 is -c2"
else
    refused "unrecognized option '--tres-per-task" "--tres-per-task is of 23.11 and later" srun -N1 -n1 --tres-per-task=cpu:2 true
fi

# ---- the GPUs of a task: with hpc-train the same as without, and its own is one of them ----
script gpus 'echo "$SLURM_PROCID $SLURMD_NODENAME ${SLURM_CPUS_PER_TASK-} $SLURM_CPUS_ON_NODE $CUDA_VISIBLE_DEVICES own=${HPC_TRAIN_GPU-}"'
# gpus WANT SRUN-OPTION...: WANT is CUDA_VISIBLE_DEVICES and the task's own GPU, by rank.
gpus() {
    local bare
    bare=$(sandbox_run srun --mpi=none -w node0,node1 "${@:2}" "$work/gpus" | sort -n)
    capture sandbox_run srun --mpi=none --hpc-train -w node0,node1 "${@:2}" "$work/gpus"
    out=$(sort -n <<<"$out")
    is "${out//own=*([!$'\n'])/own=}" "$bare" "srun ${*:2}: CPUs and GPUs are those that Slurm gives"
    is "$(awk '{ print $(NF - 1), $NF }' <<<"$out" | paste -sd' ')" "$1" "srun ${*:2}: one of them is the task's own GPU" || diag "$err"
}
shopt -s extglob
each="0 own=0 1 own=1 0 own=0 1 own=1"
gpus "$each" -N2 --ntasks-per-node=2 --gpus-per-task=1
gpus "$each" -N2 --ntasks-per-node=2 --gpus-per-task=1 --cpus-per-gpu=3
gpus "0,1 own=0 0,1 own=0" -N2 -n2 --gpus-per-task=2
gpus "$each" -N2 --ntasks-per-gpu=1 --gpus=4
if slurm_at_least 23.11; then
    gpus "$each" -N2 --ntasks-per-node=2 --tres-per-task=gres/gpu:1
    gpus "$each" -N2 --ntasks-per-node=2 --tres-per-task=cpu:3,gres/gpu:1
    like "$out" "^0 node0 3 6 0 own=0"$'\n' "three CPUs per task"
fi

# ---- what the environment of a step is made of ----
# salloc has no --export; srun within it has.
refused "unrecognized option '--export" "salloc has no --export" salloc -N1 --export=NONE true
script exported 'echo "$SLURM_JOB_ID $SLURM_TMPDIR ${MINE-} $HPC_TRAIN_RANK ${TF_CONFIG:+tf}"'
for export in ALL NONE NIL MINE PATH,MINE=2; do
    case $export in
    ALL | MINE) mine=1 ;;
    *=2) mine=2 ;;
    *) mine= ;;
    esac
    capture sandbox_run env MINE=1 salloc --quiet -N1 --hpc-train srun --mpi=none --export=$export "$work/exported"
    job=${out%% *}
    is "$out" "$job /tmp/hpc-train/$job $mine 0 tf" "salloc, and srun --export=$export in it: the step is prepared" || diag "$err"
    capture sandbox_run env MINE=1 srun --mpi=none -N1 --hpc-train --export=$export "$work/exported"
    job=${out%% *}
    is "$out" "$job /tmp/hpc-train/$job $mine 0 tf" "srun --export=$export" || diag "$err"
done

# ---- when a job ends: hpc-train takes it from nothing that a user can set ----
capture sandbox_run srun -N1 --time=5 --hpc-train sh -c 'echo "$((SLURM_JOB_END_TIME - SLURM_JOB_START_TIME))"'
if slurm_at_least 23.02; then
    is "$out" 300 "a task knows the end of its job, from 23.02 on"
else
    is "$out" 0 "tasks do not know their job's end time, up to 22.05"
fi
capture sandbox_run srun -N1 --hpc-train-stage=/etc/hostname --hpc-train-stage-out="hostname:$work/out" --export=ALL,SLURM_JOB_END_TIME=1 \
    sh -c 'test -s "$SLURM_TMPDIR/hostname"'
ran "a false one changes nothing"
test -s "$work_here/out"
ok $? "results are copied out all the same"

# ---- mpirun, which starts a task of its own on each node ----
script launched 'echo "${OMPI_COMM_WORLD_RANK-$HPC_TRAIN_RANK} $SLURMD_NODENAME $SLURM_TMPDIR ${HPC_TRAIN_RANK-}/${HPC_TRAIN_WORLD_SIZE-}"'
if slurm_at_least 23.11; then
    capture sandbox_run salloc --quiet -N2 --ntasks-per-node=2 -w node0,node1 --hpc-train srun --external-launcher "$work/launched"
    dir=$(awk 'NR == 1 { print $3 }' <<<"$out")
    like "$dir" "^/tmp/hpc-train/[0-9]+$" "srun --external-launcher: the step is prepared" || diag "$err"
    is "$(sort <<<"$out")" "0 node0 $dir 0/2"$'\n'"1 node1 $dir 1/2" "like a step with one task per node"
else
    refused "unrecognized option '--external-launcher" "srun --external-launcher is of 23.11 and later" srun --external-launcher true
fi
for _ in 1 2 3; do # once more where mpirun of Open MPI 5 takes the end of a node's daemon for its loss, and waits for ever
    capture sandbox_run salloc --quiet -N2 --ntasks-per-node=2 -w node0,node1 --hpc-train mpirun --bind-to none -n 4 "$work/launched"
    [[ $err == *"PRTE has lost communication with a remote daemon"* ]] || break
done
ran "mpirun in an allocation"
dir=$(awk 'NR == 1 { print $3 }' <<<"$out")
is "$(sort <<<"$out")" "0 node0 $dir 0/2
1 node0 $dir 0/2
2 node1 $dir 1/2
3 node1 $dir 1/2" "its ranks have the job's directory, and the numbers of the task on their node"
like "$dir" "^/tmp/hpc-train/[0-9]+$" "which exists"
capture sandbox_run salloc --quiet -N2 --ntasks-per-node=2 -w node0,node1 --hpc-train mpirun --bind-to none -n 4 \
    hpc-train bench --model mnist-cnn --batch-size 1 --steps 1
like "$status $out" "^0 .*mnist-cnn: .*, 4 ranks" "hpc-train uses mpirun's ranks" || diag "$err"

is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained"
done_testing
