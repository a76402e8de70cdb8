#!/bin/bash
# stage_tables.sh [--rounds N] ARCHIVE.tar.gz TABLE...: the tables doc/results/staging-*.csv, each by one command: starts
# a sandbox of four nodes as the table needs it, runs stage.sh there, and ends it. ARCHIVE is the JPEGs of CIFAR-10.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
    cat <<'END'
usage: stage_tables.sh [--rounds N] ARCHIVE.tar.gz TABLE...
  memory      the source lies in the memory that all nodes share: what staging costs in CPU time
  network     the source lies on a file server; its link and each node's have 1 Gb/s
  slow        the archive on a file server with a link of 100 Mb/s
  links       one file from node to node, each link with 1 Gb/s, the source in memory: four nodes, then one
END
}

rounds=()
[ "${1-}" = --rounds ] && { rounds=(--rounds "${2:?}"); shift 2; }
[ $# -ge 2 ] || { usage >&2; exit 64; }
archive=$(realpath -e "$1") || exit 66
shift
for table; do
    case $table in memory | network | slow | links) ;; *) usage >&2; exit 64 ;; esac
done

trap '"$top/quickstart" down >/dev/null 2>&1' EXIT
up() { "$top/quickstart" up "$@" >/dev/null || exit; }
down() { "$top/quickstart" down >/dev/null || exit; }
measure() { "$top/tests/bench/stage.sh" "${rounds[@]}" --archive "$archive" "$@" || exit; }

for table; do
    echo "$table ($(date +%F), load $(cut -d' ' -f1 /proc/loadavg))"
    echo
    case $table in
    memory)
        up 4
        measure small small-broadcast extract extract-broadcast large
        ;;
    network)
        up 4 --rate 1gbit --server 1gbit
        measure small-broadcast extract-broadcast large large-broadcast
        ;;
    slow)
        up 4 --rate 1gbit --server 100mbit
        measure extract-broadcast
        ;;
    links)
        up 4 --rate 1gbit
        measure large-broadcast
        measure --nodes 1 large-broadcast
        ;;
    esac
    down
    echo
done
