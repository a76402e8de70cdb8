#!/bin/bash
# --hpc-train-requeue on the sandbox: a batch job whose script ends with 75 runs again, so often as allowed; a training run that
# is stopped ends like one that is not. Slurm lets a requeued job wait until no credential of it is valid, in the sandbox 45 s: the
# jobs do so together.
# HPC_TRAIN_LONG=1: twice.
# shellcheck disable=SC2154
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 2
need_training
slow_steps
[ -n "${HPC_TRAIN_LONG-}" ] && times=2 || times=1
run_limit=$((times * 200 + 100))

submit() { sandbox_run sbatch --parsable --open-mode=append --output="$work/$1" "${@:2}"; }
# follow JOB: until it has ended for good
follow() {
    local end=$((SECONDS + run_limit))
    until sandbox_run scontrol show job "$1" | grep -qE "JobState=(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL) "; do
        [ $SECONDS -lt $end ] || return 1
        sleep 1
    done
}

# ---- jobs that wait ----
learn="$quick --data $pictures --steps-per-epoch 40 --epochs 3 --global-batch-size 4"
capture sandbox_run env OMP_NUM_THREADS=1 $launch -n1 $learn --log-dir "$work/uncut" --save-weights "$work/uncut.safetensors" --verbose 0
is "$status" 0 "an uncut run"
trained=$(submit f -N1 --hpc-train-requeue=$times --wrap "case \${SLURM_RESTART_COUNT:-0} in 0) steps=5 ;; 1) steps=$((times * 10)) ;; *) steps=1000 ;; esac
    (until [ \$(cat $work/cut/metrics.jsonl 2>/dev/null | wc -l) -ge \$steps ]; do sleep 0.05; done
        [ \${SLURM_RESTART_COUNT:-0} -ge $times ] || scancel --signal=USR1 \$SLURM_JOB_ID) &
    [ \${SLURM_RESTART_COUNT:-0} -lt $times ] || touch $work/slow_steps.so.go
    srun --hpc-train --mpi=none -n1 $slow $learn --log-dir $work/cut --checkpoint-dir $work/ckpt --save-weights $work/cut.safetensors")
stopped=$(submit o -N2 --hpc-train-requeue=$times --hpc-train-stage-out="out:$work/results-%n" --wrap \
    'srun -N2 --mpi=none bash -c "mkdir -p \$SLURM_TMPDIR/out; echo >\$SLURM_TMPDIR/out/run.\${SLURM_RESTART_COUNT:-0}; exit 75"')
array=$(submit a -N1 --array=3,5 --hpc-train-requeue=1 --wrap 'srun --mpi=none bash -c "echo \$SLURM_ARRAY_TASK_ID; exit 75"')

late=$(submit l -N1 -t 1 --hpc-train-requeue=1 --wrap 'srun --mpi=none sleep 1000')
trapped=$(submit lb -N1 -t 1 --hpc-train-requeue=1 --wrap 'trap "exit 3" TERM; srun --mpi=none sleep 1000; wait')

# ---- jobs that are not requeued ----
job=$(submit p -N1 --hpc-train-requeue --wrap 'srun --mpi=none bash -c "exit 74"')
follow "$job"
like "$(sandbox_run scontrol show job "$job")" "Restarts=0 .*ExitCode=74:0" "another exit status does not"
unlike "$(cat "$work_here/p")" "requeued" "nor says anything"
job=$(submit r -N1 --no-requeue --hpc-train-requeue --wrap 'exit 75')
follow "$job"
like "$(cat "$work_here/r")" "job $job cannot be requeued: " "a job that may not be is not, and its output says so"
capture sandbox_run srun -N1 --mpi=none --hpc-train-requeue true
like "$status $err" "^64 .*--hpc-train-requeue is for batch jobs: give it to sbatch" "for srun it is an error"
capture sandbox_run sbatch -N1 --hpc-train-requeue=no --wrap true
ok $((status == 0)) "a wrong number is refused at once"
like "$err" "--hpc-train-requeue: 'no' is not a number from 1 to 1000" "the error says what is right"

job=$(submit c -N1 -t 1 --hpc-train-requeue --wrap 'srun --mpi=none sleep 1000')
until sandbox_run scontrol show job "$job" | grep -q JobState=RUNNING; do sleep 0.2; done
sandbox_run scancel "$job"
follow "$job"
like "$(sandbox_run scontrol show job "$job")" "JobState=CANCELLED .*Restarts=0 " "nor does one that is cancelled"

# ---- at the time limit ----
restarts() { sandbox_run scontrol show job "$1" | grep -q "Restarts=1 "; }
end=$((SECONDS + 150))
until { restarts "$late" && sandbox_run scontrol show job "$trapped" | grep -qE 'JobState=(TIMEOUT|FAILED)'; } || [ $SECONDS -ge $end ]; do sleep 0.5; done
like "$(cat "$work_here/l")" "the job has reached its time limit: job $late is requeued \(1 of 1 times\)" "a job that reaches its time limit is requeued"
unlike "$(cat "$work_here/lb")" "requeued" "but not one whose script ends in its own way" || diag "$(sandbox_run scontrol show job "$trapped")"
sandbox_run scancel "$late"

# ---- what became of the others ----
for job in "$stopped" "${array}_3" "${array}_5" "$trained"; do follow "$job"; done
is "$(grep -c 'is requeued' "$work_here/o")" $times "a script that ends with 75 is requeued, as often as allowed" || diag "$(cat "$work_here/o")"
like "$(cat "$work_here/o")" "job $stopped is requeued \(1 of $times times\)" "it says so"
like "$(cat "$work_here/o")" "it is not requeued again: it has been $times times, and --hpc-train-requeue allows $times" "and when it is not again"
for node in 0 1; do
    is "$(ls "$work_here/results-$node" | sort | tail -n 2 | tr '\n' ' ')" "run.$((times - 1)) run.$times " "the results of each run are kept (node $node)"
done
like "$(sandbox_run scontrol show job "$stopped")" "Restarts=$times .*ExitCode=75:0" "Slurm has counted the same"
is "$(grep -cx 3 "$work_here/a") $(grep -cx 5 "$work_here/a")" "2 2" "each task of an array by itself" || diag "$(cat "$work_here/a")"
like "$(sandbox_run scontrol show job "$trained")" "Restarts=$times .*ExitCode=0:0" "a training run that is stopped is requeued, and ends" || diag "$(cat "$work_here/f")"
is "$(cmp "$work_here/uncut.safetensors" "$work_here/cut.safetensors" 2>&1)" "" "with the weights of the uncut one"
is "$(cmp "$work_here/uncut/metrics.jsonl" "$work_here/cut/metrics.jsonl" 2>&1)$(cmp "$work_here/uncut/history.csv" "$work_here/cut/history.csv" 2>&1)" "" \
    "and with its history, without gaps or repeats"

done_testing
