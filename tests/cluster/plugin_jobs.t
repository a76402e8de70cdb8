#!/bin/bash
# plugin_jobs.t: every kind of job: roles, heterogeneous jobs, arrays, steps at once, --export, --multi-prog, one task,
# interactive and batch steps.
# shellcheck disable=SC2016 # the tasks expand

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
# shellcheck source=tests/cluster/layout_lib.sh
. "$(dirname "$0")/layout_lib.sh"
make_show
make_het_srun
nodes=$(all_nodes | wc -l)
first=$(all_nodes | head -n 1)
last=$(all_nodes | tail -n 1)

# fails NAME REGEX: what was captured last ended with an error whose message matches.
fails() {
    ok "$([ "$status" != 0 ]; echo $?)" "$1"
    like "$err" "$2" "$1: the error says why"
}

# ---- roles ----
tell='echo "$SLURM_PROCID $HPC_TRAIN_ROLE $HPC_TRAIN_ROLE_INDEX $RANK/$WORLD_SIZE $JAX_PROCESS_ID $TF_CONFIG"'
capture sandbox_run srun --hpc-train-roles=ps:2,worker:3,chief,evaluator -N2 -n7 bash -c "$tell"
ran "a step with roles runs"
out=$(sort -n <<<"$out")
is "$(cut -d' ' -f1-5 <<<"$out")" "0 ps 0 0/7 0
1 ps 1 1/7 1
2 worker 0 2/7 2
3 worker 1 3/7 3
4 worker 2 4/7 4
5 chief 0 5/7 5
6 evaluator 0 6/7 6" "they are given out by rank; torch and JAX count all tasks"
is "$(cut -d' ' -f6- <<<"$out" | sed 's/.*"task"://; s/}$//' | paste -sd' ')" \
    '{"type":"ps","index":0} {"type":"ps","index":1} {"type":"worker","index":0} {"type":"worker","index":1} {"type":"worker","index":2} {"type":"chief","index":0} {"type":"evaluator","index":0}' \
    "each task's TF_CONFIG says which it is"
is "$(cut -d' ' -f6- <<<"$out" | sed 's/,"task".*//' | sort -u | sed 's/node[0-9]*:[0-9]*/A/g')" \
    '{"cluster":{"ps":["A","A"],"worker":["A","A","A"],"chief":["A"]}' "and all have one cluster, without the evaluator"
capture sandbox_run env HPC_TRAIN_ROLES=chief,worker srun -N2 -n3 bash -c "$tell"
is "$(sort -n <<<"$out" | cut -d' ' -f2,3 | paste -sd' ')" "chief 0 worker 0 worker 1" "workers without a number are what is left"
capture sandbox_run srun --hpc-train-roles=ps:2,worker:6 -N2 -n4 sleep 60
fails "roles for another number of tasks" "--hpc-train-roles: the roles are 8 tasks, but the step has 4"
capture sandbox_run srun --hpc-train-roles=ps:2,boss -N2 -n4 true
fails "a role that is none" "--hpc-train-roles: 'boss' is not a role"
unlike "$err" "STEP|task" "no task is started"
capture sandbox_run srun --hpc-train-roles=ps,worker:3 -N2 -n4 hpc-train fit --model mnist-cnn --data /shared
is "$(grep -c 'task of the role ps, but hpc-train trains with workers' <<<"$err")" 4 "hpc-train itself refuses parameter servers"
like "$err" "Exited with exit code 78" "with 78"
capture sandbox_run srun --hpc-train-roles=worker,chief -N2 hpc-train fit --model mnist-cnn --data /shared
like "$err" "name chief first" "a chief that is not rank 0 is an error"

# ---- heterogeneous jobs and steps ----
# het NAME TASKS ARGUMENT...: srun with `show` in each of its components.
het() {
    capture sandbox_run "${prefix[@]}" "$work/het-srun" --hpc-train "${@:3}"
    is "$(judge <<<"$out")" "$2 tasks" "$1"
}
prefix=()
show=$work/show
het "components are one cluster" 3 -N1 -n1 "$show" : -N1 -n2 "$show"
het "also without PMIx" 3 --mpi=none -N1 -n1 "$show" : -N1 -n2 "$show"
if [ "$nodes" -ge 4 ]; then
    second=$(all_nodes | sed -n 2p) third=$(all_nodes | sed -n 3p)
    het "nodes not in the order of their names" 5 -w "$third,$last" -n3 "$show" : -w "$first" -n2 "$show"
    het "the same without PMIx" 5 --mpi=none -w "$third,$last" -n3 "$show" : -w "$first" -n2 "$show"
    # Which rank is where nobody tells then but PMIx: without it such a step is refused, as below.
    ! has_pmix || het "each component with its own distribution" 10 -N2 -n4 -m cyclic "$show" : -N2 -n6 -m plane=2 "$show"
    het "three components" 4 -w "$last" -n1 "$show" : -w "$first" -n2 "$show" : -w "$second" -n1 "$show"
    prefix=(salloc -N4 --ntasks-per-node=4)
    ! has_pmix || het "components of a step within an ordinary job" 5 -N1 -n2 -w "$last" "$show" : -N2 -n3 -w "$first,$second" "$show"
    capture sandbox_run "${prefix[@]}" "$work/het-srun" --hpc-train --mpi=none -N1 -n2 -w "$last" sleep 60 : -N1 -n2 -w "$first" sleep 60
    fails "such a step without PMIx" "use srun --mpi=pmix"
    prefix=()
    capture sandbox_run "$work/het-srun" --hpc-train --mpi=none -N2 -n4 -m cyclic sleep 60 : -N2 -n4 sleep 60
    fails "a distribution that nobody tells, without PMIx" "in a step over several components block, or srun --mpi=pmix"
fi
mkdir "$work_here/out"
sandbox_run --root chmod 777 "$work" "$work/out"
capture sandbox_run "$work/het-srun" --hpc-train-stage=/etc/hostname --hpc-train-stage-mode=broadcast \
    --hpc-train-stage-out="r%t:$work/out/%n.%t" -N1 -n2 bash -c 'cp "$HPC_TRAIN_DATA" "$SLURM_TMPDIR/r$SLURM_PROCID"' : \
    -N2 -n2 bash -c 'cp "$HPC_TRAIN_DATA" "$SLURM_TMPDIR/r$SLURM_PROCID"'
ran "staging in and out over components"
is "$(cd "$work_here/out" && echo *)" "0.0 0.1 1.2 2.3" "names of results count nodes and tasks through all components"
is "$(cat "$work_here"/out/* | sort -u | wc -l)" 1 "one node read the data for all"
capture sandbox_run "$work/het-srun" --hpc-train-stage-out="r:$work/out/r" -N1 sleep 60 : -N1 sleep 60
fails "nodes of two components that would write to one name" "--hpc-train-stage-out: .*%N"
cat >"$work_here/het.sh" <<'END'
#!/bin/bash
#SBATCH -N1 -n2 --hpc-train
#SBATCH hetjob
#SBATCH -N1 -n3
cd "$1"
PATH=$1:$PATH
srun -n1 true # the numbers of the components' steps differ by now
het-srun --het-group=0,1 "$1/show" >both
srun --het-group=1 "$1/show" >second
het-srun --het-group=0,1 printenv SLURM_TMPDIR >tmpdirs
het-srun --het-group=0 -n1 bash -c 'exit 7' : --het-group=1 true 2>/dev/null
echo "job=$SLURM_JOB_ID"
END
sandbox_run --root chmod 755 "$work/het.sh"
capture sandbox_run sbatch --wait --output="$work/het.out" "$work/het.sh" "$work"
ran "a heterogeneous batch job runs"
is "$(judge <"$work_here/both")" "5 tasks" "its step over both components is one cluster"
is "$(judge <"$work_here/second")" "3 tasks" "that of one component is a separate cluster"
job=$(job_of "$(cat "$work_here/het.out")")
is "$(sort -uV "$work_here/tmpdirs" | paste -sd' ')" "/tmp/hpc-train/$job /tmp/hpc-train/$((job + 1))" \
    "each component has the directory of its own job"
is_clean "$job" "the first component"
is_clean "$((job + 1))" "the second"
start=$SECONDS
capture sandbox_run "$work/het-srun" --mpi=none --hpc-train-bind=map:5 -N1 --gres=gpu:1 sleep 300 : -N1 sleep 300
took=$((SECONDS - start))
# het-srun may take several tries, of some 8 s each.
ok "$([[ $status = 78 || $status = 137 ]] && [ $took -lt 120 ]; echo $?)" "a component that cannot be prepared ends the others" ||
    printf '# after %d s, exit code %d: %s\n' $took "$status" "$err"

# ---- arrays, and steps at once ----
capture sandbox_run sbatch --wait --output="$work/array.%a" --array=0-2 --hpc-train \
    --wrap='srun bash -c "echo \$SLURM_JOB_ID \$HPC_TRAIN_CONFIG"'
is "$(sed 's/^\([0-9]*\) .*"job":"\([0-9]*\)\.0".*"tmpdir":"\/tmp\/hpc-train\/\([0-9]*\)".*/\1 \2 \3/' "$work_here"/array.? |
    awk '$1 == $2 && $2 == $3' | sort -u | wc -l)" 3 "each task of an array has its own job in the config, and its directory"
capture sandbox_run salloc -N2 -n4 bash -c '
    for i in 1 2 3; do srun --hpc-train --overlap -N2 -n4 bash -c "echo \$SLURM_STEP_ID \$JAX_COORDINATOR_ADDRESS; sleep 1" & done; wait'
is "$(sort -u <<<"$out" | wc -l) $(cut -d: -f2 <<<"$out" | sort -u | wc -l)" "3 3" "--overlap: concurrent steps have separate ports"
capture sandbox_run salloc -w "$first,$last" -N2 -n4 bash -c "
    srun --hpc-train-port=23700 --exact -w $first -N1 -n1 sh -c 'touch $work/holds; until [ -e $work/free ]; do sleep 0.1; done' &
    until [ -e $work/holds ]; do sleep 0.1; done
    srun --hpc-train-port=23700 --exact -w $last -N1 -n1 echo another node
    srun --hpc-train-port=23700 --exact -w $first -N1 -n1 echo the same node
    touch $work/free; wait; srun --hpc-train-port=23700 --exact -w $first -N1 -n1 echo later"
is "$out" $'another node\nlater' "one port for two concurrent steps on a node: the second fails"
like "$err" "port 23700 on $first is held by another step .* --hpc-train-port" "the error names port, node and option"
# An orphan that keeps the promise is given the time to be ended.
capture sandbox_run salloc -N1 -n1 bash -c '
    srun --hpc-train-port=23800 bash -c "sleep 100 >/dev/null 2>&1 & :"; srun --hpc-train-port=23800 echo next'
is "$out" next "a step after one that left a process behind has its port"

# ---- what is exported ----
is_complete() { # NAME SRUN-OPTION...
    capture sandbox_run env OWN=1 srun --hpc-train -N2 "${@:2}" "$work/show"
    is "$status $(judge <<<"$out")" "0 2 tasks" "$1"
}
is_complete "--export=NONE" --export=NONE
is_complete "--export=LIST" --export=OWN,PATH
is_complete "--export=ALL with an addition" --export=ALL,HPC_TRAIN_RANK=9,TF_CONFIG=mine
capture sandbox_run env HPC_TRAIN_ENV=tf srun --export=NONE -N1 /bin/bash -c 'echo ${MASTER_ADDR-none} ${HPC_TRAIN_RANK-none}'
is "$out" "none 0" "a variable that stands for an option does so whatever is exported"
capture sandbox_run srun --hpc-train-env=tf --export=NONE -N1 /bin/bash -c 'echo ${MASTER_ADDR-none} ${HPC_TRAIN_RANK-none}'
is "$out" "none 0" "an option reaches it"

# ---- other steps ----
printf '0 %s\n1-2 bash %s\n' "$work/show" "$work/show" >"$work_here/multi.conf"
sandbox_run --root chmod 644 "$work/multi.conf"
capture sandbox_run srun --hpc-train -N2 -n3 --multi-prog "$work/multi.conf"
is "$status $(judge <<<"$out")" "0 3 tasks" "--multi-prog"
capture sandbox_run srun --hpc-train -n1 "$work/show"
is "$status $(judge <<<"$out")" "0 1 tasks" "a step of one task"
capture sandbox_run salloc -N2 -n2 srun --hpc-train "$work/show"
is "$status $(judge <<<"$out")" "0 2 tasks" "a step in salloc"
capture sandbox_run salloc -N1 --hpc-train srun --interactive --preserve-env bash -c \
    'echo "job=$SLURM_JOB_ID $SLURM_TMPDIR ${HPC_TRAIN_RANK-none}"; srun bash -c "echo \$HPC_TRAIN_RANK \$SLURM_TMPDIR"'
job=$(job_of "$out")
is "$out" "job=$job /tmp/hpc-train/$job none"$'\n'"0 /tmp/hpc-train/$job" "the interactive step has the directory; its steps are prepared"
is_clean "$job" "interactive step"
capture sandbox_run srun --hpc-train --pty -n1 bash -c 'echo "rank $HPC_TRAIN_RANK"'
like "$out" "rank 0" "--pty"

done_testing
