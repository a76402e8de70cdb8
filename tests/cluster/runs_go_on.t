#!/bin/bash
# runs_go_on.t: W1's network on a sandbox of its own, whose jobs are ended in the ways that Slurm has: the time limit, preemption with
# GraceTime, scontrol requeue, a slurmd that is killed, nodes that are switched off. Each run ends with the weights of one that
# nothing stopped, or as near as another number of ranks is, and with one history. Takes ten minutes.
# shellcheck disable=SC2154,SC2016
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/plugin_lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
own_sandbox
run_limit=900
# cred_expire: so long a requeued job waits
HPC_TRAIN_SLURM_CONF='PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AuthInfo=cred_expire=15
PartitionName=low Nodes=ALL PriorityTier=1 GraceTime=60
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF' limit 60 "$sandbox" up 4 >/dev/null
ok $? "a sandbox starts in which jobs are preempted" || exit 1
work=/shared/home/user work_here=$HPC_TRAIN_SANDBOX/shared/home/user
need_training

learn="hpc-train fit --model mnist-cnn --strategy multi-worker-mirrored --data $data --validation-data $data --global-batch-size 128 --learning-rate 0.05 --verbose 2"
# submit NAME EPOCHS SRUN-OR-LAUNCH OPTION...: a batch job of W1, with its outputs under NAME.
submit() {
    printf '#!/bin/bash\nexport OMP_NUM_THREADS=1\ncd %q\nexec %s %s --epochs %s --checkpoint-every 5s --checkpoint-dir %s.ckpt --log-dir %s.log --save-weights %s.safetensors\n' \
        "$work" "$3" "$learn" "$2" "$1" "$1" "$1" >"$work_here/$1.sbatch"
    job=$(sandbox_run sbatch --parsable --open-mode=append -o "$work/$1.out" "${@:4}" "$work/$1.sbatch")
}
state_of() { sandbox_run scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
follow() {
    local end=$((SECONDS + run_limit))
    until [[ $(state_of "$job" JobState) =~ ^(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL)$ ]] || [ $SECONDS -ge $end ]; do sleep 0.5; done
}
steps() { cat "$work_here/$1.log/metrics.jsonl" 2>/dev/null | wc -l; }
reached() { until [ "$(steps "$1")" -ge "$2" ]; do sleep 0.1; done; }
# same A B: weights, and logs without a gap or a repeated line
same() { (cd "$work_here" && cmp "$1.safetensors" "$2.safetensors" && cmp "$1.log/metrics.jsonl" "$2.log/metrics.jsonl" && cmp "$1.log/history.csv" "$2.log/history.csv"); }
srun='srun --mpi=none --hpc-train'

# ---- the time limit ----
submit uncut 8 "$srun" -N2
follow
is "$(state_of "$job" JobState)" COMPLETED "a run that nothing stops: 8 epochs" || diag "$(tail "$work_here/uncut.out")"
submit limit 8 "$srun" -N2 -t 1 --hpc-train-requeue --hpc-train-stage="$data"
follow
is "$(state_of "$job" JobState)" COMPLETED "the same in jobs of a minute" || diag "$(cat "$work_here/limit.out")"
diag "requeued $(state_of "$job" Restarts) times"
ok "$(($(state_of "$job" Restarts) < 2))" "it was requeued several times"
same uncut limit
ok $? "weights, history and metrics are those of the uncut run" || diag "$(tail -n 3 "$work_here"/{uncut,limit}.log/history.csv)"

# ---- preemption, and a requeue by hand ----
submit four 4 "$srun" -N4
follow
submit low 4 "$srun" -N4 -p low --exclusive --hpc-train-requeue
reached low 300
high=$(sandbox_run sbatch --parsable -N4 -p high --exclusive -o /dev/null --wrap 'sleep 3')
follow
is "$(state_of "$high" JobState) $(state_of "$job" JobState)" "COMPLETED COMPLETED" "a job of a higher partition is let in, and the run goes on" || diag "$(cat "$work_here/low.out")"
like "$(state_of "$job" Restarts)" '^[1-9]' "it was preempted"
same four low
ok $? "with the weights and the history of the run that nothing stopped" || diag "$(cat "$work_here/low.out")"
submit requeue 4 "$srun" -N4 --hpc-train-requeue
reached requeue 300
sandbox_run scontrol requeue "$job"
follow
is "$(state_of "$job" JobState)" COMPLETED "scontrol requeue: the run goes on" || diag "$(cat "$work_here/requeue.out")"
same four requeue
ok $? "with the same weights and history"

# ---- nodes ----
# on NODE: the processes that run in its namespaces
on() {
    local pid network
    network=$(for pid in $(pgrep -x 'slurmd(-wlm)?'); do
        if [ "$(nsenter --target "$pid" --uts hostname 2>/dev/null)" = "$1" ] && grep -qF "$HPC_TRAIN_SANDBOX/shared" "/proc/$pid/mountinfo"; then readlink "/proc/$pid/ns/net"; fi
    done | head -n 1)
    for pid in /proc/[0-9]*; do [ "$(readlink "$pid/ns/net" 2>/dev/null)" = "$network" ] && echo "${pid#/proc/}"; done
}
submit nodes 4 "hpc-train launch --hpc-train --mpi=none --" -N4 --no-kill
reached nodes 300
for pid in $(on node3); do [[ $(cat "/proc/$pid/comm") == slurmd* ]] && [[ $(cat "/proc/$pid/comm") != slurmstepd ]] && kill -KILL "$pid"; done
kill -KILL "$(rank_pid 1)"
sleep 2
reached nodes 900
for pid in $(on node2); do kill -KILL "$pid"; done
end=$((SECONDS + run_limit))
until [[ $(state_of "$job" JobState) == COMPLET* ]] || [ $SECONDS -ge $end ]; do sleep 0.5; done # COMPLETING: nodes are not there
out=$(cat "$work_here/nodes.out")
like "$(state_of "$job" JobState) $(state_of "$job" ExitCode)" '^COMPLET[A-Z]* 0:0$' "launch: a slurmd is killed with a task, then a node is switched off: the run ends" || diag "$out"
like "$out" "node3 is left out" "without the node that has no slurmd"
like "$out" "node2 is left out.*starting again, 2 tasks on 2 of 4 nodes" "and without the one that is off"
said=$(python3 - "$work_here" <<'END'
import csv, json, sys
steps = lambda name: [(r["epoch"], r["step"]) for r in map(json.loads, open(f"{sys.argv[1]}/{name}.log/metrics.jsonl"))]
accuracy = lambda name: float(list(csv.DictReader(open(f"{sys.argv[1]}/{name}.log/history.csv")))[-1]["val_accuracy"])
print("same steps" if steps("four") == steps("nodes") else "other steps", "%.4f %.4f" % (accuracy("four"), accuracy("nodes")))
END
)
diag "$said"
ok "$(awk '{ d = $3 - $4; print !($1 == "same" && d < 0.01 && d > -0.01) }' <<<"$said")" "with each step once, and the accuracy of the run that nothing stopped"
done_testing
