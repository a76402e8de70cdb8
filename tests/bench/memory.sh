#!/bin/bash
# memory.sh [STEPS]: the resident memory of slurmstepd while its tasks run, in kB, on the running sandbox: without the
# plugin (its line is taken out of plugstack.conf meanwhile), with the plugin but not asked for, and with --hpc-train; the
# median of STEPS steps each (default 10), all of it (VmRSS) and the part of its own (RssAnon).
# shellcheck disable=SC2016 # the inner shell expands
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
sandbox=$top/etc/sandbox/sandbox
steps=${1:-10}
conf=/etc/slurm/plugstack.conf.d/hpc-train.conf

trap '"$sandbox" run --root sh -c "[ ! -e $conf.away ] || mv $conf.away $conf"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The task's parent is slurmstepd; only root may read what it has.
measure() { # OPTION...: lines of "VmRSS RssAnon"
    "$sandbox" run --root bash -c '
        cd /tmp && steps=$1
        shift
        for ((i = 0; i < steps; i++)); do
            setpriv --reuid=user --regid=user --init-groups srun -N1 "$@" bash -c "echo \$PPID; sleep 0.5" |
                while read -r pid; do awk "/^VmRSS|^RssAnon/ { print \$2 }" "/proc/$pid/status" | paste -sd" "; done
        done' memory "$steps" "$@"
}
median() { sort -n | awk '{ v[NR] = $1 } END { if (NR == 0) exit 1; print v[int((NR + 1) / 2)] }'; }

report() { # NAME OPTION...
    local lines name=$1
    shift
    lines=$(measure "$@")
    [ "$(wc -l <<<"$lines")" = "$steps" ] || { echo "memory.sh: a step has failed" >&2; exit 1; }
    rss=$(cut -d' ' -f1 <<<"$lines" | median)
    own=$(cut -d' ' -f2 <<<"$lines" | median)
    printf '%-34s VmRSS %6d kB  RssAnon %6d kB' "$name" "$rss" "$own"
    [ "${without-}" ] && printf '  more: %d kB, %d kB' $((rss - ${without% *})) $((own - ${without#* }))
    echo
}
"$sandbox" run --root mv $conf $conf.away || exit
report "without the plugin"
without="$rss $own"
"$sandbox" run --root mv $conf.away $conf || exit
report "with it, not asked for"
report "with --hpc-train" --hpc-train
report "with data staged" --hpc-train-stage=/etc/hostname
