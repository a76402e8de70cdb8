#!/bin/bash
# batch.t: the ranks of --batch-size auto agree on one batch, the one with the least memory deciding, and it runs within a
# memory cgroup; one that does not fit is refused.

program=$top_builddir/hpc-train
if ! command -v mpirun >/dev/null; then
    echo "1..0 # SKIP there is no mpirun"
    exit 0
fi
export OMP_NUM_THREADS=1
ranks() { # PROGRAM ARGUMENT...
    mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$@" 2>&1
}
number=0
check() { # NAME WHAT-IS-THERE REGULAR-EXPRESSION
    local verdict=ok
    [[ $2 =~ $3 ]] || verdict="not ok"
    echo "$verdict $((++number)) - $1"
    [ "$verdict" = ok ] || printf '%s\n' "$2" | sed 's/^/# /'
}

echo 1..6
out=$(ranks "$program" fit --model mnist-cnn --data synthetic:200 --batch-size auto)
check "two ranks: a power of two within half of the pictures" "$? $out" "^0 batch size 64 takes .* shared by 2 ranks\).*global batch 128"
check "one line of it" "$(grep -c "batch size" <<<"$out")" "^1$"

# A cgroup for each rank; the second has less.
base=/sys/fs/cgroup limit=memory.max events=memory.events
if [ -d /sys/fs/cgroup/memory ]; then
    base=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup) limit=memory.limit_in_bytes events=memory.failcnt
fi
group=$base/hpc-train-test-$$
trap 'rmdir "$group"-[01] 2>/dev/null' EXIT
if ! { mkdir "$group-0" "$group-1" && [ -e "$group-0/cgroup.procs" ] && echo 340M >"$group-0/$limit" && echo 170M >"$group-1/$limit"; } 2>/dev/null; then
    for i in 3 4 5 6; do
        echo "ok $i # SKIP no memory cgroup can be made here"
    done
    exit 0
fi
cat >"${TMPDIR:-/tmp}/hpc-train-test-$$" <<END
#!/bin/sh
echo \$\$ >"$group-\$OMPI_COMM_WORLD_RANK/cgroup.procs" && exec "$program" "\$@"
END
script=${TMPDIR:-/tmp}/hpc-train-test-$$
chmod 755 "$script"
trap 'rm -f "$script"; rmdir "$group"-[01] 2>/dev/null' EXIT
out=$(ranks "$script" fit --model mnist-cnn --data synthetic:2100 --optimizer adam --batch-size auto)
check "the rank with the least memory decides for both" "$? $out" "^0 batch size 512 takes .*\(cgroup\); 1024 would take .*global batch 1024"
check "and stays within it" "$(cat "$group-1/$events")" "^(0|.*max 0)"
out=$(ranks "$script" fit --model mnist-cnn --data synthetic:2100 --optimizer adam --strategy multi-worker-mirrored --batch-size 1000)
check "what does not fit is refused, with what would" "$? $out" "78 .*batch size 1000 takes .* more than the .*: at most 512 fits"
out=$(ranks "$script" fit --model mnist-cnn --data synthetic:2100 --optimizer adam --batch-size 1000)
check "unless stages of the model do" "$? $out" "^0 .*strategy pipeline: the memory has no room for the whole model"
