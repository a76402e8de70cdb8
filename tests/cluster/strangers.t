#!/bin/bash
# strangers.t: another user of the cluster, on the login node and on a compute node, at every port of a step while it starts,
# trains, evaluates, stages and ends: it ends with 0 and the losses that it has without him, and he reads nothing. Who has
# another step's key, or the right one in another place, is as strange. Between two tasks, a relay that reads everything.
# shellcheck disable=SC2086,SC2154,SC2016
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
. "$top_srcdir/tests/cluster/plugin_lib.sh"
on_cluster 3
needs_plugin
need_training
slow_steps
cp "${top_builddir:?run by make check}/tests/cluster/stranger" "$work_here/stranger"
chmod 755 "$work_here" "$work_here/stranger"
attack=${HPC_TRAIN_LONG:+flood} attack=${attack:-attack}
other=(setpriv --reuid=33 --regid=33 --clear-groups) # www-data

# at_all_ports PORT: he is at that port and the next one of node0 and one of node1, from two places, until go_away; what he has to
# tell is in $work_here/told. His processes leave the cores to the step's, as on a machine of their own.
at_all_ports() {
    local at
    attackers=()
    for at in "node0 $1" "node0 $(($1 + 1))" "node1 $1"; do
        sandbox_run --root nice -n 19 "${other[@]}" "$work/stranger" $attack $at 600 &
        attackers+=($!)
        on_node node2 nice -n 19 "${other[@]}" "$work/stranger" $attack $at 600 &
        attackers+=($!)
    done >>"$work_here/told" 2>&1
}
go_away() {
    for pid in "${attackers[@]}"; do kill "$pid"; done
    sandbox_run --root pkill -f "$work/stranger $attack"
    wait "${attackers[@]}" 2>/dev/null
}
# timed COMMAND...: as capture, and $took, in ms.
timed() {
    local start=${EPOCHREALTIME/./}
    capture "$@"
    took=$(((${EPOCHREALTIME/./} - start) / 1000))
}
# decoy PORT: two parameter servers of another step, on node0, that wait for their workers.
decoy() {
    sandbox_run srun -N2 -n4 -w node[0-1] --job-name=decoy --hpc-train-port=$1 --hpc-train-roles=ps:2,worker:2 \
        bash -c '[ $SLURM_PROCID -lt 2 ] || exec sleep 600; exec "$@"' decoy \
        hpc-train fit --model mnist-convnet --strategy parameter-server $few >/dev/null 2>&1 &
    waits=$!
    wait_for on_node node0 sh -c "cat /proc/net/tcp* | grep -q ':$(printf %04X $1) 0*:0000 0A'"
}
no_decoy() { [ -z "$(sandbox_run squeue --noheader --name=decoy)" ]; }
lines() { sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "$work_here/$1/metrics.jsonl"; }

# attacked NAME SRUN-AND-PROGRAM…: the run alone, and under attack, where it takes its time: the same losses, and the same words.
# HPC_TRAIN_LONG=1: as often as the cores can do it, and before that beside an attack on another step. Here the attackers' processes are on the step's own cores: what it
# costs that he is at the step itself is the third time less the second.
attacked() {
    local name=$1 alone beside
    shift
    port=$((21000 + RANDOM % 900 * 10))
    [ -n "${HPC_TRAIN_LONG-}" ] || hurry
    timed sandbox_run srun -w node[0-1] --hpc-train-port=$port "${@//LOG/$work/alone}"
    alone=$took
    ran "$name: without intruders"
    if [ -n "${HPC_TRAIN_LONG-}" ]; then
        decoy $((port + 5))
        at_all_ports $((port + 5))
        timed sandbox_run srun -w node[0-1] --hpc-train-port=$port "${@//LOG/$work/beside}"
        beside=", $took ms beside 6 attackers of 9 ways each on another step"
        go_away
        sandbox_run scancel --name=decoy
        wait $waits
        wait_for no_decoy # or its nodes would still be taken
    fi
    take_time
    at_all_ports $port
    timed sandbox_run srun -w node[0-1] --hpc-train-port=$port "${@//LOG/$work/under}"
    go_away
    ran "$name: under attack"
    is "$(grep -v '^hpc-train-stage: node0: 1 file' <<<"$err")" "" "$name: no message about them"
    if [ -e "$work_here/alone/metrics.jsonl" ]; then is "$(lines under)" "$(lines alone)" "$name: the losses are the same"; fi
    diag "$name: $alone ms alone$beside, $took ms under attack"
    rm -rf "$work_here/alone" "$work_here/beside" "$work_here/under"
}
few="--data $pictures --validation-data $pictures"
late='[ $SLURM_PROCID != 1 ] || sleep 2; exec "$@"'
attacked "multi-worker-mirrored, a rank late" -N2 -n4 bash -c "$late" late $slow $quick $few --seed 5 --global-batch-size 16 \
    --steps-per-epoch 10 --epochs 2 --log-dir LOG
# A server: with a worker that is late the others may be through before it.
attacked "parameter servers, a server late" --hpc-train-roles=ps:2,worker:2 -N2 -n4 bash -c "$late" late \
    $slow hpc-train fit --model mnist-convnet --strategy parameter-server --ps-sync $few --seed 5 --global-batch-size 16 \
    --steps-per-epoch 10 --epochs 2 --log-dir LOG
is "$(sort -u "$work_here/told" 2>/dev/null)" "" "he was never answered"
# Who listens in a broadcast speaks first: a random number, which says nothing.
head -c 40M /dev/urandom >"$work_here/file"
sandbox_run --root chown user: "$work/file"
attacked "broadcast" --hpc-train-stage="$work/file" --hpc-train-stage-mode=broadcast -N2 bash -c 'cmp "$0" "$SLURM_TMPDIR/file"' "$work/file"

# ---- who has a key ----
# A run that waits for its workers, and another step of the same user.
port=$((21000 + RANDOM % 900 * 10))
begin srun -N2 -n4 -w node[0-1] --job-name=keyed --hpc-train-port=$port --hpc-train-roles=ps:2,worker:2 bash -c '[ $SLURM_PROCID -lt 2 ] || until [ -e "$0/go" ]; do sleep 0.1; done; exec "$@"' "$work" \
    hpc-train fit --model mnist-convnet --strategy parameter-server --ps-sync $few --global-batch-size 16 --steps-per-epoch 10 --epochs 1
run=$began
sandbox_run srun -w node2 --hpc-train bash -c "cp \$HPC_TRAIN_KEY_FILE $work/other.key; until [ -e $work/go ]; do sleep 0.1; done" &
wait_for test -s "$work_here/other.key"
key_file() { on_node node0 sh -c "cat /tmp/hpc-train/$job/.hpc-train/key.0.0" 2>/dev/null; }
has_key() { # the step may begin after the other one
    job=$(sandbox_run squeue --noheader --name=keyed --format=%A)
    key=$(key_file)
    [ -n "$key" ]
}
wait_for has_key
like "$key" '^[0-9a-f]{64}$' "a step's key is 64 digits"
is "$(on_node node0 stat -c '%a %U' "/tmp/hpc-train/$job/.hpc-train/key.0.0")" "600 user" "in a file readable by the user only"
capture on_node node0 "${other[@]}" cat "/tmp/hpc-train/$job/.hpc-train/key.0.0"
like "$status $err" '^1 .*Permission denied' "other users cannot read it"
(umask 077 && printf %s "$key" >"$work_here/right.key")
sandbox_run --root chown user: "$work/right.key"
hello() { sandbox_run "$work/stranger" hello "$@"; } # HOST PORT KEY RUN PURPOSE FROM TO
for role in worker pulse leader watch peers exchange; do
    is "$(hello node0 $port - "$job.0" $role 1 0)" refused "another key, as $role: rejected"
done
for role in worker leader; do
    is "$(hello node0 $port "$work/other.key" "$job.0" $role 1 0)" refused "the key of the user's other job, as $role: refused"
    is "$(hello node0 $port "$work/right.key" "$job.1" $role 1 0)" refused "the key of the job's next step, as $role: rejected"
    is "$(hello node0 $port "$work/right.key" "$job.0" $role 1 1)" refused "the key for another server, as $role: rejected"
done
is "$(hello node0 $port "$work/right.key" "$job.0" worker 1 0)" accepted "this key, this step, this server: accepted"
# What a core dump of srun, or of the process that it forks, would hold: nothing, once all nodes have the key.
cp "$top_srcdir/tests/cluster/key_in_core.py" "$work_here"
in_core() { # ARGUMENTS-OF-SRUN KEY
    sandbox_run --root bash -c 'for pid in $(pgrep -f "^srun .*$2"); do python3 "$1/key_in_core.py" "$pid" "$3"; done | sort -u' x "$work" "$@"
}
not_in_core() { [ "$(in_core "$@")" = 0 ]; }
wait_for not_in_core '--job-name=[k]eyed' "$key"
is "$(in_core '--job-name=[k]eyed' "$key")" 0 "srun of two nodes does not hold the key any more"
is "$(in_core 'node2 --[h]pc-train ' "$(cat "$work_here/other.key")")" 0 "nor does srun of one node"
ok "$([ "$(sandbox_run --root bash -c 'python3 "$1" $$ "$2"; :' "$work/key_in_core.py" "$work/key_in_core.py" "$key")" -gt 0 ]; echo $?)" "in a process that has it, it is found"
everywhere() { # where the key might be read
    sandbox_run --root scontrol show job "$job"
    sandbox_run --root scontrol show step "$job.0"
    sandbox_run --root sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" "\n"'
    sandbox_run --root sh -c 'for p in $(pgrep -x hpc-train); do tr "\0" "\n" </proc/$p/environ; done'
    cat "${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}"/log/*
}
everything=$(everywhere 2>/dev/null)
like "$everything" HPC_TRAIN_KEY_FILE "the tasks' environments name the file"
ok "$(grep -q "$key" <<<"$everything"; echo $((!$?)))" "the key is in no environment, command line, log, or output of Slurm"
unset everything
touch "$work_here/go"
began=$run
finish
is "$status" 0 "the run continues with its own workers" || diag "$out" "$err"
wait

# ---- who sees and sends everything ----
# A parameter server and its worker, on this machine, with a relay between them.
use_key "$work_here/key"
chmod 600 "$work_here/key"
relayed() { # HOW
    local port=$((28000 + RANDOM % 900)) rank role cluster pids=()
    for rank in 0 1; do
        role='ps'
        cluster="\"ps\":[\"127.0.0.1:$port\"],\"worker\":[\"127.0.0.1:$((port + 2))\"]"
        [ $rank = 0 ] || { role=worker cluster=${cluster/:$port/:$((port + 1))}; }
        HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"7.0\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":0},\"rank\":$rank,
            \"local_rank\":$rank,\"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":2,\"gpus\":0}]}" HPC_TRAIN_JOIN_SECONDS=20 \
            timeout --kill-after=5 100 "$top_builddir/hpc-train" fit --strategy parameter-server --ps-sync --model mnist-convnet --data synthetic:64 \
            --global-batch-size 8 --epochs 2 --seed 3 --verbose 0 --summary-json "$work_here/$1.json" >"$work_here/$1.$rank" 2>&1 &
        pids+=($!)
    done
    python3 "$top_srcdir/tests/cluster/relay.py" $((port + 1)) $port "$1" >"$work_here/$1.relay" 2>&1 &
    relay=$!
    statuses=
    for pid in "${pids[@]}"; do wait "$pid"; statuses+="$? "; done
    kill $relay 2>/dev/null
    wait $relay 2>/dev/null
}
relayed as-it-is
is "$statuses" "0 0 " "a passive relay: the run ends normally" || diag "$(cat "$work_here"/as-it-is.*)"
for how in flip repeat swap cut insert; do
    relayed $how
    is "$statuses" "69 69 " "a relay, $how: both ends detect it" || diag "$(cat "$work_here/$how".[01r]*)"
    ok "$([ ! -e "$work_here/$how.json" ]; echo $?)" "$how: no result is written"
done
relayed replay
is "$statuses" "0 0 " "recorded data, replayed on other connections: the run ends normally" || diag "$(cat "$work_here"/replay.*)"
is "$(sort -u "$work_here/replay.relay")" "96 bytes" "the replaying client only gets a nonce"
done_testing
