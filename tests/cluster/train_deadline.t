#!/bin/bash
# The end of a job on the sandbox: tasks are told when it is; fit stops before it with a checkpoint, also when the limit has
# been moved, and the next job goes on.
# shellcheck disable=SC2154
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 2
need_training
slow_steps
run_limit=400

# end_of JOB: when Slurm says it ends, in seconds since 1970
end_of() { date -d "$(sandbox_run scontrol show job "$1" | sed -n 's/.*EndTime=\([^ ]*\).*/\1/p')" +%s; }
near() { [ $(($1 - $2)) -ge -1 ] && [ $(($1 - $2)) -le 1 ]; }

for way in "srun -N2 -t 7 --hpc-train" "salloc -Q -N2 -t 7 srun --hpc-train" "salloc -Q -N2 -t 7 srun --hpc-train --export=PATH"; do
    capture sandbox_run $way --mpi=none bash -c '[ "$SLURM_PROCID" = 1 ] && echo $HPC_TRAIN_END_TIME $(date -d "$(/usr/bin/scontrol show job $SLURM_JOB_ID | sed -n "s/.*EndTime=\([^ ]*\).*/\1/p")" +%s)'
    read -r told real <<<"$out"
    ok "$(near "${told:-0}" "${real:-5}"; echo $?)" "$way: HPC_TRAIN_END_TIME is the job's end" || diag "$out" "$err"
done
capture sandbox_run srun -N1 -t 7 env
unlike "$out" HPC_TRAIN_END_TIME "a step without hpc-train has none"

# A job of two minutes that is given 40 seconds: noticed by asking again.
options="--data $pictures --steps-per-epoch 50 --global-batch-size 4 --checkpoint-dir $work/ckpt --log-dir $work/log"
job=$(sandbox_run sbatch --parsable -N1 -t 2 --output="$work/o" --wrap "exec $launch -n1 $slow $quick $options --epochs 100000")
until [ "$(cat "$work_here/log/metrics.jsonl" 2>/dev/null | wc -l)" -gt 5 ] || [ $SECONDS -ge "$cluster_end" ]; do sleep 0.2; done
sandbox_run --root scontrol update JobId="$job" EndTime="$(date -d '+40 seconds' +%Y-%m-%dT%H:%M:%S)"
limit=$(end_of "$job")
until sandbox_run scontrol show job "$job" | grep -qE 'JobState=(COMPLETED|FAILED|TIMEOUT|CANCELLED)'; do sleep 0.5; done
ended=$(date +%s)
like "$(sandbox_run scontrol show job "$job")" "ExitCode=75:0" "fit stops before the limit that was moved: exit status 75" || diag "$(cat "$work_here/o")"
ok "$((ended > limit + 1))" "in time ($((limit - ended)) s before the end)"
like "$(cat "$work_here/o")" "[0-9]+ epochs take about [0-9.]+ h, and the job ends in [0-9]+ s: training will stop with a checkpoint in epoch [0-9]+ of 100000" \
    "at its start it has said how much fits"
like "$(cat "$work_here/o")" "stopped by the job's time limit after step [0-9]+, in epoch [0-9]+ of 100000" "it says why it has stopped"
done=$(wc -l <"$work_here/log/metrics.jsonl")
epochs=$((done / 50 + 1))
capture sandbox_run $launch -n1 $quick $options --epochs $epochs
like "$status $out" "^0 .*continues .*: $((done / 50)) of $epochs epochs are done, and $((done % 50)) steps of the next" "another job goes on from there" || diag "$err"
is "$(wc -l <"$work_here/log/metrics.jsonl")" $((epochs * 50)) "and each step is logged once"
done_testing
