#!/bin/bash
# plugin_missing.t: a node where the plugin is missing or broken, or whose prolog is long. srun names it with the likely causes and a
# command that shows them, ends the step in time with what runs unprepared there, and never ends with 0. In a sandbox of its own.
# shellcheck disable=SC2154,SC2016

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
wait=10 # seconds: tasks start later on a busy machine, not that late
mkdir -p "$own/shared/missing"
printf '#!/bin/sh\ncase $(hostname) in node1) sleep $(cat /shared/missing/prolog 2>/dev/null || echo 0) ;; esac\n' >"$own/shared/missing/prolog.sh"
chmod 755 "$own/shared/missing/prolog.sh"
HPC_TRAIN_SLURM_CONF=Prolog=/shared/missing/prolog.sh HPC_TRAIN_PLUGSTACK_ARGS="wait=$wait" capture limit 60 "$sandbox" up 3
ok "$status" "a sandbox starts" || { diag "$err"; exit 1; }
run_limit=100
step() { capture sandbox_run srun --mpi=none --hpc-train "$@"; }
plugin=/opt/hpc-train/lib/slurm/spank_hpc_train.so
# bad NODE PATH FILE: in this node another file is there, until `well`.
bad() {
    on_node "$1" mount --bind "$3" "$2"
    at_exit "on_node $1 umount $2 2>/dev/null"
}
well() { on_node "$1" umount "$2"; }
# look: runs the command that the message gives, as it stands.
look() {
    capture sandbox_run bash -c "$(sed -nE 's/.*To look: (srun -N1 .*)$/\1/p' <<<"$err" | head -n 1)"
}

step -N3 true
ran "a step of three nodes"
step -N1 true
ran "and one of one node"

# ---- no line in plugstack.conf ----
on_node node1 mkdir -p /tmp/none
bad node1 /etc/slurm/plugstack.conf.d /tmp/none
step -N3 sh -c '[ "$(hostname)" != node1 ] || exec sleep 1000'
is "$status" 69 "no plugin on a node: srun ends with 69" || diag "$err"
like "$err" "warning: waiting for node1 to prepare its tasks, .*prolog takes long, or the plugin is missing.*srun --jobid=[0-9]+ .* -w node1" \
    "it has said whom it waits for, why, and how to look"
like "$err" "error: hpc-train: node1 has not prepared its tasks in $wait seconds, and the step is ended" "and says so in the end"
is "$(on_node node1 pgrep -fx "sleep 1000")" "" "the unprepared task is ended"
look
like "$status $out$err" "^78 .*plugstack.* names spank_hpc_train.so" "the command shows the cause"
step -N3 true
is "$status" 69 "the same with tasks that have ended well" || diag "$err"
step -N1 -w node1 true
like "$status $err" "^69 .*tasks have run unprepared" "the same on that node alone" || diag "$err"
capture sandbox_run srun --mpi=none -N3 true
ran "steps without hpc-train run"
step -N2 -x node1 true
ran "and those without the node"
well node1 /etc/slurm/plugstack.conf.d

# ---- broken files ----
# (One that is cut off crashes what loads it: Slurm's own prolog fails there, and srun with it.)
on_node node1 sh -c 'echo text >/tmp/text.so; : >/tmp/empty.so; cp "$(ldd /bin/sh | sed -n "s/.*=> \(.*libc.*\) (.*/\1/p")" /tmp/other.so'
for file in text ${HPC_TRAIN_LONG:+empty other}; do
    bad node1 $plugin /tmp/$file.so
    step -N2 -w 'node[0-1]' true
    like "$status $err" "^69 .*node1 has not prepared its tasks" "a plugin that cannot be loaded: $file" || diag "$err"
    well node1 $plugin
done

# ---- on no node ----
for node in node0 node1 node2; do
    on_node $node mkdir -p /tmp/none
    bad $node /etc/slurm/plugstack.conf.d /tmp/none
done
step -N3 true
like "$status $err" "^69 .*tasks have run unprepared" "the plugin on no node" || diag "$err"
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    step -N2 sleep 1000
    like "$status $err" "^69 .*node0 and 1 other node has not prepared its tasks in $((2 * wait)) seconds" "and long tasks" || diag "$err"
fi
for node in node0 node1 node2; do well $node /etc/slurm/plugstack.conf.d; done

# ---- a long prolog ----
echo $((wait * 3 / 5)) >"$own/shared/missing/prolog"
step -N2 -w 'node[0-1]' true
is "$status" 0 "a prolog that ends in time" || diag "$err"
like "$err" "warning: waiting for node1 to prepare" "it was named meanwhile"
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    echo $((wait + 20)) >"$own/shared/missing/prolog"
    step -N2 -w 'node[0-1]' true
    like "$status $err" "^69 .*node1 has not prepared its tasks in $wait seconds" "one that does not" || diag "$err"
fi
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained"
done_testing
