#!/bin/bash
# latency.sh [PAIRS [OPTION...]]: what `srun --hpc-train -N2 true` takes longer than `srun -N2 true` on the running sandbox,
# as the median of paired runs (default 30 pairs; OPTIONs replace --hpc-train). Each pair is run in alternating order, each
# run on a cluster that is idle.
# shellcheck disable=SC2016 # the inner shell expands
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
pairs=${1:-30}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- --hpc-train

# Everything runs in one shell on the login node, so that entering the sandbox is not timed.
"$top/etc/sandbox/sandbox" run bash -c '
    pairs=$1
    shift
    milliseconds() { # COMMAND...: into $took
        local start end
        # the epilogs of the run before are not to be waited for, nor to take part
        while sinfo --noheader --states=allocated,mixed,completing --format=%n | grep -q .; do sleep 0.05; done
        start=${EPOCHREALTIME/./}
        "$@" || exit
        end=${EPOCHREALTIME/./}
        took=$((end - start))
    }
    srun -N2 true && srun "$@" -N2 true || exit
    for ((i = 0; i < pairs; i++)); do
        if ((i % 2)); then
            milliseconds srun -N2 true; without=$took
            milliseconds srun "$@" -N2 true; with=$took
        else
            milliseconds srun "$@" -N2 true; with=$took
            milliseconds srun -N2 true; without=$took
        fi
        echo "$without $with $((with - without))"
    done' latency "$pairs" "$@" |
    awk '
    function median(list, n,    i, j, t) {
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { a[NR] = $1; b[NR] = $2; d[NR] = $3 }
    END {
        if (NR == 0) exit 1
        printf "%d pairs, medians: without %.1f ms, with %.1f ms, difference %.1f ms\n",
            NR, median(a, NR) / 1000, median(b, NR) / 1000, median(d, NR) / 1000
    }'
