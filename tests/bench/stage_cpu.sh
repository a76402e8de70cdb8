#!/bin/bash
# stage_cpu.sh ARCHIVE.tar.gz [BUILD]: CPU seconds (of user and kernel) of staging four times at once, to folders in
# memory, beside cp, rsync and tar. Where several nodes share the cores, as in the sandbox, their ratio is that of the times, whatever
# else the machine does. Run it in the sandbox (./quickstart run), where broadcasts find munged.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ $# -gt 0 ] || { echo "usage: stage_cpu.sh ARCHIVE.tar.gz [BUILD]" >&2; exit 64; }
build=${2:-$top/build}
stage=$build/hpc-train-stage
archive=$(mktemp --suffix .tar.gz) here=$(mktemp -d) to=$(mktemp -d /dev/shm/stage_cpu.XXXXXX) || exit
trap 'rm -rf "$archive" "$here" "$to"' EXIT
cp "$1" "$archive" && mkdir "$here/small" && tar -xzf "$archive" -C "$here/small" && cd "$here" || exit
head -c 1G /dev/urandom >large

four() { # NAME COMMAND...: {} is a folder, {i} its number
    local name=$1 i base=$((20000 + RANDOM % 2000 * 4)) pids=() failed=
    shift
    rm -rf "${to:?}"/*
    for i in 0 1 2 3; do mkdir "$to/$i"; echo "127.0.0.1:$((base + i))"; done >nodes
    export base
    TIMEFORMAT='%U %S'
    { time {
        for i in 0 1 2 3; do
            "${@//'{}'/$to/$i}" $i >log.$i 2>&1 &
            pids+=($!)
        done
        for i in "${pids[@]}"; do wait "$i" || failed=1; done
    }; } 2>seconds
    [ -z "$failed" ] || { echo "stage_cpu.sh: $name failed:" >&2; cat log.* >&2; exit 1; }
    awk -v name="$name" '{ printf "| %s | %.2f s |\n", name, $1 + $2 }' seconds
}
# The last argument is the node's number.
# shellcheck disable=SC2016
staged() { four "staged, $1" bash -c 'exec "$0" --mode "$1" --nodes nodes --index "$4" --job cpu.$base --to "$3" "$2:x"' "$stage" "$1" "$2" '{}'; }
# shellcheck disable=SC2016
by_hand() { four "$1" bash -c "$2" "$3" '{}'; }

echo "| four times at once | CPU |"
echo "|---|---|"
# shellcheck disable=SC2016
{
    by_hand "small files, cp -r" 'exec cp -r "$0" "$1/x"' small
    command -v rsync >/dev/null && by_hand "small files, rsync -a" 'exec rsync -a "$0/" "$1/x"' small
    staged copy small
    staged broadcast small
    by_hand "archive, tar xf" 'exec tar xf "$0" -C "$1"' "$archive"
    staged extract,copy "$archive"
    staged extract,broadcast "$archive"
    by_hand "1 GiB, cp" 'exec cp "$0" "$1/x"' large
    staged copy large
}
rm -rf "${to:?}"/*
mkdir "$to/files"
[ ! -x "$build/tests/bench/files" ] || "$build/tests/bench/files" "$to/files"
