# tests/bench/speedup_lib.sh - what speedup.sh, plan_check.sh and cluster_peers.sh share: a sandbox with links of a rate, one
# core for each node, medians over rounds. Sourced; not a program.
# shellcheck shell=bash
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rounds=${ROUNDS:-5}
steps=${STEPS:-100}
cpus=$(nproc)
home=${HPC_TRAIN_SANDBOX:-$top/.sandbox}/shared/home/user # where `quickstart run` starts, on every node

cluster() { # NODES RATE: a new cluster; RATE - for links that nobody shapes
    "$top/quickstart" down >/dev/null
    if [ "$2" = - ]; then "$top/quickstart" up "$1" >/dev/null; else "$top/quickstart" up "$1" --rate "$2" >/dev/null; fi || exit
    trap '"$top/quickstart" down >/dev/null' EXIT
}

# dilated_cluster NODES RATE: a new cluster in slow motion: time is dilated as many times as nodes share a core, so that each
# has what would be a core of its own, beside links of that rate, which hold as many bytes back as they would. `dilation` is by
# how much: give it to --dilation, and multiply images per second by it.
dilated_cluster() {
    local mbit=${2/%gbit/000}
    dilation=$(awk -v n="$1" -v c="$cpus" 'BEGIN { print (n > c ? n / c : 1) }')
    cluster "$1" "$(awk -v mbit="${mbit/%mbit/}" -v d="$dilation" 'BEGIN { printf "%dkbit/%dms", 1000 * mbit / d, 50 * d }')"
}

# on NODES COMMAND…: the command as one task on each of so many nodes. A task has one core and one thread: node i of the
# sandbox is pinned to core i modulo the machine's. Its exit status; what it says goes to standard error when that is not 0.
# AS_ROOT=1: as root, for interpreters that lie where only root may look.
on() {
    local nodes=$1 status
    shift
    # shellcheck disable=SC2016 # the task's shell expands
    "$top/quickstart" run ${AS_ROOT:+--root} timeout 600 srun --hpc-train --chdir=/shared/home/user "-N$nodes" "-n$nodes" bash -c \
        'cpus=$1; shift; exec taskset -c $((SLURM_PROCID % cpus)) env OMP_NUM_THREADS=1 "$@"' task "$cpus" "$@" >"$home/out" 2>"$home/err"
    status=$?
    [ $status = 0 ] || [ $status = 64 ] || { echo "exit $status: $* on $nodes nodes" && tail -n 5 "$home/err"; } >&2
    return $status
}

# rate NODES OPTION…: images per second of `hpc-train bench`, "-" where this version has no such strategy or option, or
# cannot split this model among so many.
rate() {
    local nodes=$1
    shift
    rm -f "$home/bench.json"
    on "$nodes" hpc-train bench --steps "$steps" --summary-json bench.json "$@" || { echo -; return; }
    per_second "$home/bench.json"
}

per_second() { sed -n 's/^ *"images_per_second": \([0-9.e+]*\).*/\1/p' "$1"; }

# apart OPTION…: images per second of two nodes together that train each alone at the same time: what this machine's cores make
# when nothing has to be sent. A virtual machine's cores may share one real core, for minutes at a time.
apart() {
    rm -f "$home"/bench.[01].json
    # shellcheck disable=SC2016 # the task's shell expands
    on 2 bash -c 'exec env -i PATH="$PATH" HOME="$HOME" OMP_NUM_THREADS=1 hpc-train bench --summary-json "bench.$SLURM_PROCID.json" "$@"' \
        task --steps "$steps" "$@" || { echo -; return; }
    echo "$(per_second "$home/bench.0.json") $(per_second "$home/bench.1.json")" | awk '{ print $1 + $2 }'
}

# The median of the numbers in standard input, one a line; "-" without any.
median() { grep -v '^-*$' | sort -g | awk '{ v[NR] = $1 } END { print NR == 0 ? "-" : NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# The least and the most of the numbers in standard input.
span() { grep -v '^-*$' | sort -g | awk 'NR == 1 { least = $1 } END { print NR == 0 ? "-" : least " to " $1 }'; }

multiply() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 > 0) print a * b; else print "-" }'; }

divide() { awk -v a="$1" -v b="$2" -v f="${3:-%.2f}" 'BEGIN { if (a + 0 > 0 && b + 0 > 0) printf f "\n", a / b; else print "-" }'; }

in_slow_motion() {
    echo "Time is dilated by nodes / $cpus, as are the links' rates: each node has what would be a core of its own; latencies" \
        "are the machine's own, and count that much less."
}

described() { echo "$(date +%F), $rounds rounds of $steps steps in turn, medians; load before: $(cut -d' ' -f1 /proc/loadavg)."; }
