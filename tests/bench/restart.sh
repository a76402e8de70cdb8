#!/bin/bash
# restart.sh [TRIALS]: seconds from the death of a rank, and of a node, to the next step computed under `hpc-train launch`, on
# four nodes of the running sandbox: W1's network, 60,000 pictures, global batch 64. Prints each trial, median and worst.
# shellcheck disable=SC2154
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$top_srcdir/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
trials=${1:-20}
on_cluster 4
need_training
finished=1
run_limit=3600
network() { sandbox_run --root ip link set "$1" "$2"; }
at_exit "network node3 up"
cat >"$work_here/job" <<END
#!/bin/bash
export OMP_NUM_THREADS=1
cd $work
exec hpc-train launch --restarts 1000 --hpc-train --mpi=none -- hpc-train fit --model mnist-cnn --data $data --global-batch-size 64 \
    --epochs 100000 --checkpoint-dir ckpt --checkpoint-every 2s --log-dir log --verbose 2 --learning-rate 0.001
END
now() { date +%s.%N; }
steps() { cat "$work_here/log/metrics.jsonl" 2>/dev/null | wc -l; }
continued() { grep -c '^continues' "$work_here/out" 2>/dev/null; }
# next_step: until a run that continues has logged one
next_step() {
    local before=$1 at
    until [ "$(continued)" -gt "$before" ]; do sleep 0.01; done
    at=$(steps)
    until [ "$(steps)" -gt "$at" ]; do sleep 0.01; done
}
# trial WHAT COMMAND...: prints the seconds
trial() {
    local before began runs lost
    runs=$(continued) before=$(steps)
    until [ "$(steps)" -gt $((before + 400)) ]; do sleep 0.1; done # a checkpoint later
    before=$(steps) began=$(now)
    "${@:2}"
    next_step "$runs"
    lost=$((before - $(sed -n 's/^continues .*: \([0-9]*\) of .* done, and \([0-9]*\) steps.*/\1 \2/p' "$work_here/out" | tail -n 1 | awk '{ print $1 * 938 + $2 }')))
    echo "$1 $(awk -v a="$began" -v b="$(now)" 'BEGIN { printf "%.2f", b - a }') s, $lost steps done again"
}
kill_rank() {
    local pid
    until pid=$(rank_pid $((1 + RANDOM % 3))) && [ -n "$pid" ]; do sleep 0.01; done
    kill -KILL "$pid"
}
lose_node() { network node3 down; }
start() {
    rm -rf "$work_here"/{out,log,ckpt}
    job=$(sandbox_run sbatch --parsable -N4 --no-kill --no-requeue -o "$work/out" "$work/job")
    until [ "$(steps)" -gt 100 ]; do sleep 0.1; done
}
stop() {
    sandbox_run scancel "$job"
    while [ -n "$(sandbox_run squeue --noheader)" ]; do sleep 0.2; done
    until [ "$(sandbox_run sinfo --noheader --Node --states=idle --format=%n | wc -l)" = 4 ]; do sleep 0.5; done
}
# A node where tasks have failed twice is left out: each trial has a job of its own.
for what in kill_rank lose_node; do
    for ((i = 0; i < trials; i++)); do
        start
        trial "$what" "$what"
        network node3 up
        stop
    done
done | awk '{ print; fflush(); list[$1] = list[$1] $2 "\n" }
    END {
        for (what in list) {
            sort = "sort -n | awk \x27{ v[NR] = $1 } END { printf \"" what ": median %.2f s, worst %.2f s of %d\\n\", v[int((NR + 1) / 2)], v[NR], NR }\x27"
            printf "%s", list[what] | sort
            close(sort)
        }
    }'
