#!/bin/bash
# slow_node.t: a node that computes slowly during training is named after a minute, with the reason; healthy nodes are not.
# For check-long: a run takes more than a minute. HPC_TRAIN_HEALTHY=N: so many healthy runs, default 3.
# shellcheck disable=SC2154,SC2086 # several words
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 2
need_training
[ "$(nproc)" -ge 2 ] || skip_all "one CPU: the nodes would disturb each other"
run_limit=200
stop() { for pid in $(processes "$1"); do kill "$pid"; done; }
has_loops() { [ "$(processes perl | wc -l)" = 4 ]; }
# Each node has a core of its own; 75 s of training.
trains() {
    capture sandbox_run $launch -N2 -n2 -w node[0-1] bash -c "exec taskset -c \$SLURM_NODEID timeout --signal=INT 75 $fit --data $data --global-batch-size 128 --epochs 1000 --verbose 2 $*"
}

slow=0 healthy=${HPC_TRAIN_HEALTHY-3}
cluster_end=$((SECONDS + 600 + 100 * healthy))
for ((i = 0; i < healthy; i++)); do
    trains
    # What else runs on this machine takes one of the two cores from its node: that is not a healthy one.
    if grep -q "is slow" <<<"$err"; then
        read -r load _ </proc/loadavg
        diag "$(grep "is slow" <<<"$err") (load $load)"
        [ "${load%.*}" -ge $(($(nproc) + 1)) ] || slow=$((slow + 1))
    fi
done
like "$out" "Epoch 2/" "healthy nodes train" || diag "$err"
is "$slow" 0 "and are not named in $healthy runs of 75 s" || diag "$err"

sandbox_run perl -e "use POSIX; fork for 1 .. 2; POSIX::setsid(); 1 while 1; # $work" 2>/dev/null &
at_exit "stop perl"
wait_for has_loops
for pid in $(processes perl); do taskset -p 2 "$pid" >/dev/null; done
trains --log-dir "$work/log"
stop perl
is "$(grep -c 'is slow' <<<"$err")" 1 "a slow node is named once" || diag "$err"
like "$err" "hpc-train: node node1 is slow: for a minute its steps have taken [0-9.]+ times the others': .*other processes used [0-9.]+ of its 1 CPUs, most perl" \
    "by its name, with the reason" || diag "$err"
is "$(sandbox_run hpc-train report --format md -o - "$work/log" 2>/dev/null | grep -ci 'slow.*node1')" 1 "the report names it, too" ||
    diag "$(sandbox_run hpc-train report --format md -o - "$work/log" 2>&1 | head -n 40)"
done_testing
