#!/bin/bash
# broadcast_faults.t: one thing goes wrong on one of three nodes in each of many broadcasts: all nodes report it, or it is
# harmless for all; none is silent, and nothing is left. `make check-long` makes 2,500 of them and waits for a node that
# hangs, `make check` a dozen.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
stage=/opt/hpc-train/bin/hpc-train-stage
# Where the user can read them, wherever this was built.
cp "${top_builddir:?run by make check}"/tests/stage/{faults,.libs/fault.so} "$work_here"
faults=$work/faults module=$work/fault.so
seed=${HPC_TRAIN_SEED:-$RANDOM}
echo "# seed $seed (HPC_TRAIN_SEED=$seed repeats it)"
tries=16 full=2 kinds=write,create,read-end,grow,recv,send-error,flip,cut
if [ -n "${HPC_TRAIN_LONG-}" ]; then tries=2400 full=100 kinds=all run_limit=3000; fi

# Within the sandbox, where munged runs, on the login node's own disk.
work=/tmp/broadcast-faults
at_exit "sandbox_run --root bash -c 'umount $work/to 2>/dev/null; rm -rf $work'"
sandbox_run --root bash -c "umount $work/to 2>/dev/null; rm -rf $work"
sandbox_run mkdir $work
sandbox_run "$faults" --tree $work || exit
sandbox_run tar -C $work/tree -czf $work/t.tar.gz .
tap_of faults sandbox_run "$faults" "$stage" "$module" $work $tries "$seed" "$kinds" broadcast broadcast:t.tar.gz

# A disk that somebody else fills, at any moment.
sandbox_run --root bash -c "rm -rf $work/to; mkdir -p $work/to; mount -t tmpfs -o size=8m,mode=1777 none $work/to"
tap_of "full disk" sandbox_run "$faults" "$stage" "$module" $work $full "$seed" fill broadcast broadcast:t.tar.gz

# A node that hangs, at any moment: nothing is heard of it.
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    # shellcheck disable=SC2016
    capture sandbox_run bash -c '
        cd "$1" && head -c 400M /dev/zero >huge || exit
        for i in 0 1 2; do
            echo "127.0.0.1:$((29700 + i))"
            mkdir -p hung/$i
        done >hung.nodes
        for i in 0 1 2; do
            timeout 100 "$2" --to hung/$i --mode broadcast --nodes hung.nodes --index $i --job hung huge & pids[i]=$!
        done
        for ((i = 0; i < 2000; i++)); do [ -s hung/1/.hpc-train/incoming/0 ] && break; sleep 0.005; done
        pkill -STOP -P ${pids[1]}
        for i in 0 2; do wait ${pids[i]}; echo $?; done
        pkill -KILL -P ${pids[1]}
        ls hung/[02] | grep -c huge' hung "$work" "$stage"
    is "$(tr '\n' ' ' <<<"$out")" "69 69 0 " "a node that hangs: the others end, without a copy"
    like "$err" "it was lost: nothing was heard of it for more than 30 seconds" "the error names the silent node"
fi

done_testing
