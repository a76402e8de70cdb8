#!/bin/bash
# hpc-train launch on the sandbox: a task that is killed and a node that is switched off cost seconds, not the run; programs of
# any kind are started again with the layout of what is left; what a restart cannot help is not started again.
# shellcheck disable=SC2154,SC2016
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 4
need_training
slow_steps
run_limit=120
network() { sandbox_run --root ip link set "$1" "$2"; }
at_exit "network node3 up"

# submit NAME OPTIONS-AND-PROGRAM…: launch in a batch job of four nodes, one task each; leaves $job. Its output ends with its exit
# status.
submit() {
    printf '#!/bin/bash\nexport OMP_NUM_THREADS=1\ncd %q\nhpc-train launch' "$work" >"$work_here/$1.sbatch"
    printf ' %q' "${@:2}" >>"$work_here/$1.sbatch"
    printf '\nstatus=$?\necho "launch: $status"\nexit $status\n' >>"$work_here/$1.sbatch"
    job=$(sandbox_run sbatch --parsable -N4 --no-kill --no-requeue --open-mode=append -o "$work/$1.out" "$work/$1.sbatch")
}
ended() { [ $SECONDS -ge "$cluster_end" ] || grep -q '^launch: ' "$work_here/$1.out" 2>/dev/null; }
# await NAME: until it has ended; $out is what it has printed
await() {
    local end=$((SECONDS + run_limit))
    until ended "$1"; do
        [ $SECONDS -lt $end ] || break
        sleep 0.2
    done
    out=$(cat "$work_here/$1.out")
}
until_there() { until [ -e "$work_here/$1" ] || [ $SECONDS -ge "$cluster_end" ]; do sleep 0.1; done; }

# What is started besides trainings.
cat >"$work_here/program" <<'END'
#!/bin/bash
echo "restart $HPC_TRAIN_RESTART rank $RANK of $WORLD_SIZE on $(hostname) master $MASTER_ADDR:$MASTER_PORT $TF_CONFIG"
case $1 in
one) touch "said.$RANK"
    if [ "$HPC_TRAIN_RESTART.$RANK" = 0.1 ]; then
        until [ -e said.0 ] && [ -e said.2 ] && [ -e said.3 ]; do sleep 0.1; done
        kill -KILL $$
    fi ;;
place) [ "$(hostname)" != node1 ] || kill -KILL $$ ;;
node) [ "$(hostname)" != node2 ] || kill -KILL $$ ;;
spare) if [ "$RANK" = "$2" ] && [ "$HPC_TRAIN_RESTART" = 0 ]; then kill -KILL $$; fi ;;
stop) trap 'exit 75' TERM; touch "stops.$RANK"; until [ -e never ]; do sleep 0.1; done ;;
grow) trap 'exit 75' USR1
    touch "began.$HPC_TRAIN_RESTART"
    [ "$HPC_TRAIN_RESTART" != 2 ] || exit 0
    until [ "$HPC_TRAIN_RESTART.$RANK" = 0.0 ] && [ -e lost ]; do sleep 0.1; done
    exit 69 ;;
*) [ "$RANK" != 0 ] || exit "$1" ;;
esac
wait
END
chmod 755 "$work_here/program"

# ---- training ----
learn="$quick --data $pictures --steps-per-epoch 40 --epochs 6 --batch-size 4 --learning-rate 0.001"
capture sandbox_run env OMP_NUM_THREADS=1 srun -N4 --mpi=none --hpc-train $learn --log-dir "$work/uncut" --verbose 0
is "$status" 0 "a run that nothing stops" || diag "$err"
lines() { cat "$work_here/log/metrics.jsonl" 2>/dev/null | wc -l; }
reached() { until [ "$(lines)" -ge "$1" ] || ended f; do sleep 0.05; done; }
# off NODE: without network, and all that it runs is gone, but slurmd, which cannot be reached
off() {
    local pid network
    for pid in $(pgrep -x 'slurmd(-wlm)?'); do
        [ "$(nsenter --target "$pid" --uts hostname 2>/dev/null)" = "$1" ] && [[ $(readlink "/proc/$pid/root") ]] &&
            grep -qF "$HPC_TRAIN_SANDBOX/shared " "/proc/$pid/mountinfo" && network=$(readlink "/proc/$pid/ns/net")
    done
    network "$1" down
    for pid in $(processes hpc-train) $(pgrep -f '^slurmstepd: '); do
        [ -n "$network" ] && [ "$(readlink "/proc/$pid/ns/net")" = "$network" ] && kill -KILL "$pid"
    done
}
submit grow --regrow --hpc-train --mpi=none -- ./program grow
until_there began.0
submit f --hpc-train --mpi=none -- $slow $learn --checkpoint-dir ckpt --checkpoint-every 5 --log-dir log --verbose 2
reached 1
pid=$(rank_pid 2)
reached 8
kill -KILL "$pid"
reached 16
off node3
touch "$work_here/lost"
hurry
await f
until_there began.1
network node3 up # the other one looks for nodes every 30 s
like "$out" "launch: 0" "a run that has lost a task, and then a node, ends with 0" || diag "$out"
like "$out" "the run has failed: node2: task 2: Killed" "it says which task was killed"
like "$out" "starting again, 4 tasks on 4 of 4 nodes" "with it the next run is as large"
like "$out" "node3 is left out: (its slurmd does not answer|state [a-z]*\*)" "it says which node is gone"
like "$out" "starting again, 3 tasks on 3 of 4 nodes: node0,node1,node2" "the next run uses the others"
like "$out" "3 ranks, global batch 16" "with the global batch of the first"
column() { sed -nE "s/.*\"$2\": ([^,}]*).*/\1/p" "$work_here/$1/metrics.jsonl"; }
for run in uncut log; do column $run loss >"$work_here/$run.losses"; done
is "$(column log epoch | xargs) $(column log step | xargs)" "$(column uncut epoch | xargs) $(column uncut step | xargs)" "each step is logged once"
is "$(near "$work_here/uncut.losses" "$work_here/log.losses" 240 $((16 * positions)))" "" "with the loss of the uncut run"

# ---- programs of any kind ----
submit one --hpc-train --mpi=none -- ./program one
submit node --hpc-train --mpi=none --export=PATH -- ./program node
submit place -N2 --hpc-train --mpi=none -- ./program place
submit few --min-nodes 4 --hpc-train --mpi=none -- ./program node
submit again --restarts 2 --hpc-train --mpi=none -- ./program 1
await one
like "$out" "launch: 0" "a task of any program" || diag "$out"
is "$(grep -c '^restart 0 rank [0-3] of 4' <<<"$out") $(grep -c '^restart 1 rank [0-3] of 4' <<<"$out")" "4 4" "all tasks are told the number of the restart"
is "$(sed -nE 's/^restart ([01]) .* master (node0:[0-9]+) .*\{"cluster":\{"worker":\["node0:[0-9]+".*/\1 \2/p' <<<"$out" | sort -u | wc -l)" 2 \
    "and have MASTER_PORT and TF_CONFIG anew" || diag "$out"
await node
like "$out" "node2 is left out: tasks have failed there 2 times" "a node where tasks fail twice is left out" || diag "$out"
like "$out" "restart 2 rank 2 of 3 on node3.*launch: 0" "the run ends without it"
await place
like "$out" "node1 is left out.*starting again, 2 tasks on 2 of 2 nodes: node0,node2.*launch: 0" "another node of the job takes its place" || diag "$out"
await few
like "$out" "not started again: 3 of 4 nodes are left, and --min-nodes is 4.launch: 1(37|43)" "not on fewer nodes than --min-nodes" || diag "$out"
await again
like "$out" "not started again: there were 2 restarts, and --restarts allows 2.launch: 1" "not more often than --restarts" || diag "$out"
is "$(grep -c 'rank 0 of' <<<"$out")" 3 "it ran three times"
printf '#!/bin/bash\ncd %q\nhpc-train launch --hpc-train --mpi=none -- ./program spare 1\necho "launch: $?"\n' "$work" >"$work_here/array.sbatch"
sandbox_run sbatch --wait --array=0-1 -N2 --no-kill -o "$work/array.%a.out" "$work/array.sbatch" >/dev/null
is "$(cat "$work_here"/array.?.out | grep -cE 'starting again(, 2 tasks on 2 of 2 nodes.*)?$|^launch: 0$')" 4 "each task of a job array looks at its own nodes" ||
    diag "$(cat "$work_here"/array.?.out)"
statuses="64 65 74 75 78 0"
for status in $statuses; do submit "s$status" --hpc-train --mpi=none -- ./program $status; done
submit spare --kill-on-bad-exit=0 --no-kill --hpc-train --mpi=none -- ./program spare 3
submit first --kill-on-bad-exit=0 --hpc-train --mpi=none -- ./program spare 0
for status in $statuses; do
    await "s$status"
    is "$(grep -c 'rank 0 of' <<<"$out") ${out##*$'\n'}" "1 launch: $status" "exit status $status ends it"
done
await spare
is "$(grep -c 'rank 0 of' <<<"$out") ${out##*$'\n'}" "1 launch: 137" "with --kill-on-bad-exit=0 the run goes on without a task, and is not repeated" || diag "$out"
await first
is "$(grep -c 'rank 0 of' <<<"$out") ${out##*$'\n'}" "2 launch: 0" "but not without task 0" || diag "$out"
submit stop --hpc-train --mpi=none -- ./program stop
for rank in 0 1 2 3; do until_there "stops.$rank"; done
for pid in $(pgrep -x hpc-train); do tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "launch.*program stop" && kill -TERM "$pid"; done
await stop
is "$(grep -c 'rank 0 of' <<<"$out") ${out##*$'\n'}" "1 launch: 75" "SIGTERM reaches the tasks, and nothing is started again" || diag "$out"

# ---- where it cannot run ----
capture sandbox_run hpc-train launch -- true
like "$status $err" "^78 .*inside of a job" "outside of a job"
capture sandbox_run srun -N1 --mpi=none hpc-train launch -- true
like "$status $err" "^78 .*launch starts srun itself" "started by srun"
capture sandbox_run salloc -Q -N1 : -N1 hpc-train launch -- true
like "$status $err" "^78 .*not for heterogeneous jobs" "in a heterogeneous job"
capture sandbox_run salloc -Q -N1 hpc-train launch -n1 true
like "$status $err" "^64 .*give -- and a program" "without --"
capture sandbox_run salloc -Q -N1 hpc-train launch --no-kill -- true
like "$status $err" "^64 .*--no-kill is not for launch" "an option that forbids restarts"
capture sandbox_run salloc -Q -N1 hpc-train launch --no-such-option -- true
is "$((status > 0)) $(grep -c unrecognized <<<"$err")" "1 1" "an option that srun does not know is not tried again" || diag "$err"
capture sandbox_run salloc -Q -N1 hpc-train launch --restarts=-1 -- true
like "$status $err" "^64 .*--restarts" "a wrong number"
capture sandbox_run salloc -Q -N2 -w "node[1-2]" hpc-train launch --mpi=none -- hostname
is "$status $(sort <<<"$out" | tr '\n' ' ')" "0 node1 node2 " "in salloc, its output is the program's"

# ---- a node that has come back ----
await grow
like "$out" "a node is back.*starting again, 4 tasks on 4 of 4 nodes.*restart 2 rank 3 of 4 on node3.*launch: 0" "--regrow: a node that is back is used again" || diag "$out"
ok "$(none_drained; echo $?)" "no node is drained"
done_testing
