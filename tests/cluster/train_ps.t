#!/bin/bash
# Training through srun --hpc-train where tasks have roles: parameter servers and workers, of which some are killed; and the
# reduction within a node before that between nodes.
# shellcheck disable=SC2086,SC2154
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 2
need_training
slow_steps
sandbox_run srun -N1 --hpc-train true >/dev/null 2>&1 || skip_all "the plugin is not on this cluster"
in_epoch() { grep -q "^Epoch $1/" "$work_here/out"; }

# ---- 2 servers, 4 workers, asynchronous; then one worker less ----
ps="srun --kill-on-bad-exit=0 --hpc-train --hpc-train-roles=ps:2,worker:4 -N2 -w node0,node1 -n6 $slow hpc-train fit --model mnist-convnet --strategy parameter-server"
begin $ps --data $pictures --batch-size 16 --steps-per-epoch 40 --epochs 5 --learning-rate 0.05 --max-staleness 6 --summary-json "$work/ps.json"
wait_for in_epoch 2
kill -KILL "$(rank_pid 4)"
hurry
finish
ok "$(in_epoch 5; echo $?)" "a worker is killed in epoch 2: the others train to the end of epoch 5" || diag "$err" "$out"
is "$(sed -n 's/^srun: error: .*: \(task .*\)$/\1/p' <<<"$err")" "task 4: Killed" "only the killed task fails"
like "$err" 'hpc-train: worker 2 on node[01] was lost: its connection closed.*; 3 of 4 workers are here' "server 0 names it"
summary=$work_here/ps.json
is "$(number workers_lost "$summary") $(number servers "$summary")" "1 2" "the summary has the lost worker, and the servers"
losses=$(sed -n 's/.* loss: \([0-9.]*\)$/\1/p' <<<"$out" | tr '\n' ' ')
ok "$(awk '{ print !(NF == 5 && $5 < 0.75 * $1 && $5 > 0) }' <<<"$losses")" "it converges: the losses of the epochs are $losses"
staleness=$(number staleness_largest "$summary")
ok "$(awk -v s="$staleness" 'BEGIN { print !(s ~ /^[0-9]+$/ && s >= 1 && s <= 6) }')" "staleness is reported: $staleness at most, within its bound of 6"

# ---- a server is killed ----
take_time
begin $ps --data $pictures --batch-size 4 --epochs 1000 --steps-per-epoch 5
wait_for in_epoch 3
mark
kill -KILL "$(rank_pid 1)"
finish
like "$err" 'parameter server 1 on node0:[0-9]+ was lost: its connection closed' "a server is killed: it is named ($seconds s)"
is "$(sed -n 's/^srun: error: .*: tasks\{0,1\} \([0-9,-]*\): Exited with exit code 69$/\1/p' <<<"$err" | tr ',' '\n' |
    awk -F- '{ tasks += ($2 == "" ? $1 : $2) - $1 + 1 } END { print tasks + 0 }')" 5 "the five others end with 69" || diag "$err"
ok "$(wait_for none_left; echo $?)" "no process is left"

# ---- a worker comes when the run is over, and nobody waits for it any more: it would wait for servers that have yet to come, and is told that there are none ----
# shellcheck disable=SC2016
capture sandbox_run srun --kill-on-bad-exit=0 --hpc-train --hpc-train-roles=ps:1,worker:2 -N2 -w node0,node1 -n3 bash -c 'case $SLURM_PROCID in
        0) HPC_TRAIN_JOIN_SECONDS=20 "$@"; status=$?; touch "$0/over"; exit $status ;;
        2) until [ -e "$0/over" ]; do sleep 0.1; done ;;
    esac
    exec "$@"' "$work" hpc-train fit --model mnist-convnet --strategy parameter-server --data $pictures --batch-size 4 --steps-per-epoch 3 --epochs 1
like "$err" 'worker 1 \(node[01]\): parameter server 0 on node0:[0-9]+ was lost: it has ended: the run is over, or failed' "a worker started after the run: the error says so"
is "$(sed -n 's/^srun: error: .*: \(task.*\)$/\1/p' <<<"$err")" "task 2: Exited with exit code 69" "only that worker ends with 69" || diag "$err"

# ---- 2 nodes of 2 ranks: what leaves a node is one node's gradients, not one rank's for each ----
cat >"$work_here/counted" <<'END'
#!/bin/bash
# counted FILE CMD…: CMD; the first task of a node notes the bytes that leave the node meanwhile in FILE.NODE.
sent() { # in the shell: some awks have no integers above 2^31
    local sum=0 name values
    while IFS=: read -r name values; do
        read -ra values <<<"$values"
        [[ ${name// /} == lo || ! ${values[8]-} =~ ^[0-9]+$ ]] || sum=$((sum + values[8]))
    done </proc/self/net/dev
    echo $sum
}
before=$(sent)
"${@:2}"
status=$?
[ "$SLURM_LOCALID" != 0 ] || echo $(($(sent) - before)) >"$1.$SLURM_NODEID"
exit $status
END
chmod 755 "$work_here/counted"
train_on() { # NAME STEPS SRUN-OPTION…
    capture sandbox_run $launch --hpc-train "${@:3}" "$work/counted" "$work/$1" $fit --data $pictures --seed 5 --global-batch-size 8 \
        --learning-rate 0.001 --steps-per-epoch "$2" --bucket-bytes 2000000 --log-dir "$work/$1.log" --verbose 0
    is "$status$err" 0 "$1, $2 steps"
}
train_on short 3 -N2 -n4 --ntasks-per-node=2
train_on four 9 -N2 -n4 --ntasks-per-node=2
train_on one 9 -N1 -n1
gradients=$((4 * 2770634))
for node in 0 1; do
    sent=$((($(cat "$work_here/four.$node") - $(cat "$work_here/short.$node")) / 6))
    ok "$(awk -v s=$sent -v g=$gradients 'BEGIN { print !(s > 0.95 * g && s < 1.15 * g) }')" "node $node sends $sent bytes a step for $gradients bytes of gradients"
done
losses() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$work_here/$1.log/metrics.jsonl"; }
is "$(near <(losses one) <(losses four) 9 $((8 * positions)))" "" "with the losses of one rank"
done_testing
