#!/bin/bash
# stage.sh: how long staging to all nodes of the running sandbox takes, beside what users do by hand on every node at once.
# Each round runs the two one after the other, the order changing from round to round; the table has the medians of
# both and of the rounds' ratios. Run it on a quiet machine, after ./quickstart up 4.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
    cat <<'END'
usage: stage.sh [--rounds N] [--nodes N] [--cold] [--archive FILE.tar.gz] CASE...
  large              one file of 1 GiB: --hpc-train-stage-mode copy and cp
  large-broadcast    the same, with mode broadcast
  small              what is in FILE as a folder: mode copy and cp -r, and rsync -a
  small-broadcast    the same, with mode broadcast
  extract            FILE: mode extract,copy and tar xf
  extract-broadcast  the same, with mode extract,broadcast
With --cold the source's content is dropped from the page cache before each run, as a data set is that nobody has read.
An empty step of the same shape is timed too; "without the step" is what is left when that is taken off.
END
}

# ---- outside: one job runs all of it ----
if [ "${1-}" != --inside ]; then
    rounds=5 nodes=4 archive='' cold='' cases=()
    while [ $# -gt 0 ]; do
        case $1 in
        --rounds) rounds=${2:?} && shift ;;
        --nodes) nodes=${2:?} && shift ;;
        --archive) archive=$(realpath -e "${2:?}") || exit 66; shift ;;
        --cold) cold=1 ;;
        -h | --help) usage && exit ;;
        large | large-broadcast) cases+=("$1") ;;
        small | small-broadcast | extract | extract-broadcast) cases+=("$1"); need_archive=1 ;;
        *) usage >&2; exit 64 ;;
        esac
        shift
    done
    [ ${#cases[@]} -gt 0 ] || { usage >&2; exit 64; }
    [ -z "${need_archive-}" ] || [ -n "$archive" ] || { echo "stage.sh: --archive FILE is needed" >&2; exit 64; }
    exec "$top/quickstart" run salloc -Q --nodes "$nodes" --exclusive \
        bash "$top/tests/bench/stage.sh" --inside "$rounds" "$archive" "$cold" "${cases[@]}"
fi

# ---- inside the job ----
rounds=$2 archive=$3 cold=$4
shift 4
work=$(mktemp -d "$HOME/bench.XXXXXX") || exit
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
nodes=$SLURM_NNODES

# shellcheck disable=SC2016
clear_nodes() { srun -N "$nodes" --hpc-train bash -c 'rm -rf "$SLURM_TMPDIR/x"' || exit; }

time_of() { # COMMAND...: seconds it took are in $seconds
    local begin=${EPOCHREALTIME/./}
    "$@" >log 2>&1 || { echo "stage.sh: '$*' failed:" >&2; cat log >&2; exit 1; }
    seconds=$((${EPOCHREALTIME/./} - begin))
}

empty() { srun -N "$nodes" --hpc-train true; }
stage() { srun -N "$nodes" --hpc-train-stage="$source:x" --hpc-train-stage-mode="$mode" true; }
by_hand() {
    # shellcheck disable=SC2016
    srun -N "$nodes" --hpc-train bash -c 'dst=$SLURM_TMPDIR/x; '"$command" x "$source"
}

forget() {
    [ -n "$cold" ] || return
    python3 - "$source" <<'END'
import os, sys
def forget(path):
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
if os.path.isfile(sys.argv[1]):
    forget(sys.argv[1])
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        forget(os.path.join(folder, name))
END
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR % 2) print v[(NR + 1) / 2]; else print (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

compare() { # WHAT: of $source, in $mode, with $command
    local i pair ours=() theirs=() empties=()
    sync -f "$source" # what is not on the disk yet stays in the cache
    clear_nodes
    for ((i = 0; i <= rounds; i++)); do # the first is not counted: it fills the caches
        time_of empty && empties+=("$seconds")
        pair=(stage by_hand)
        ((i % 2)) && pair=(by_hand stage)
        for one in "${pair[@]}"; do
            forget
            time_of "$one"
            clear_nodes
            ((i)) || continue
            if [ "$one" = stage ]; then ours+=("$seconds"); else theirs+=("$seconds"); fi
        done
    done
    paste <(printf '%s\n' "${ours[@]}") <(printf '%s\n' "${theirs[@]}") <(printf '%s\n' "${empties[@]:1}") >pairs
    awk -v what="$1" -v a="$(cut -f1 pairs | median)" -v b="$(cut -f2 pairs | median)" -v e="$(cut -f3 pairs | median)" \
        -v ratio="$(awk '{ print $2 / $1 }' pairs | median)" -v net="$(awk '{ print ($2 - $3) / ($1 - $3) }' pairs | median)" \
        'BEGIN { printf "| %s | %.2f s | %.2f s | %.2f s | %.2f | %.2f |\n", what, a / 1e6, b / 1e6, e / 1e6, ratio, net }'
}

# shellcheck disable=SC2016
run_case() {
    mode=copy
    case $1 in *-broadcast) mode=broadcast ;; esac
    case $1 in
    large*)
        source=$work/large
        [ -e "$source" ] || head -c 1G /dev/urandom >"$source"
        command='cp "$1" "$dst"'
        compare "1 GiB, $mode / cp"
        ;;
    small*)
        source=$work/small
        [ -d "$source" ] || { mkdir "$source" && tar -xzf "$archive" -C "$source"; } || exit
        command='cp -r "$1" "$dst"'
        compare "small files, $mode / cp -r"
        command -v rsync >/dev/null || return
        command='rsync -a "$1/" "$dst"'
        compare "small files, $mode / rsync -a"
        ;;
    extract*)
        mode=extract,$mode source=$work/archive.tar.gz
        cp -f "$archive" "$source"
        command='mkdir "$dst" && tar xf "$1" -C "$dst"'
        compare "archive, $mode / tar xf"
        ;;
    esac
}

echo "| $nodes nodes${cold:+, cold} | staged | by hand | empty step | ratio | without the step |"
echo "|---|---|---|---|---|---|"
for one; do run_case "$one"; done
