#!/bin/bash
# broadcast_faults.t: one thing goes wrong on one of three nodes in each of many broadcasts: all nodes report it, or it is
# harmless for all; none is silent, and nothing is left. `make check-long` makes 2,500 of them and waits for a node that
# hangs, `make check` some dozen.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
stage=/opt/hpc-train/bin/hpc-train-stage
module=${top_builddir:?run by make check}/tests/stage/.libs/fault.so
seed=${HPC_TRAIN_SEED:-$RANDOM}
echo "# seed $seed (HPC_TRAIN_SEED=$seed repeats it)"
tries=42 full=4
if [ -n "${HPC_TRAIN_LONG-}" ]; then tries=2400 full=100; fi

# The driver's TAP becomes ours.
run() { # WHAT COMMAND...
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) ok 0 "${line#ok * - }" ;;
        'not ok '*) ok 1 "${line#not ok * - }" ;;
        1..*) ;;
        *) diag "$line" ;;
        esac
    done < <("${@:2}" 2>&1; status=$?; [ $status = 0 ] || echo "not ok 0 - $1 ended with $status")
}

# Within the sandbox, where munged runs, on the login node's own disk.
work=/tmp/broadcast-faults
at_exit "sandbox_run --root bash -c 'umount $work/to 2>/dev/null; rm -rf $work'"
sandbox_run --root bash -c "umount $work/to 2>/dev/null; rm -rf $work"
faults=$top_builddir/tests/stage/faults
sandbox_run mkdir $work
sandbox_run "$faults" --tree $work || exit
sandbox_run tar -C $work/tree -czf $work/t.tar.gz .
run faults sandbox_run "$faults" "$stage" "$module" $work $tries "$seed" all broadcast broadcast:t.tar.gz

# A disk that somebody else fills, at any moment.
sandbox_run --root bash -c "rm -rf $work/to; mkdir -p $work/to; mount -t tmpfs -o size=8m,mode=1777 none $work/to"
run "full disk" sandbox_run "$faults" "$stage" "$module" $work $full "$seed" fill broadcast broadcast:t.tar.gz

done_testing
