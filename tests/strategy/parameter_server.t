#!/bin/bash
# parameter_server.t: servers and workers as processes on this host, each with a config of its own: synchronous training is
# that of one rank, asynchronous training converges within its bound, workers may be lost and come late, servers may not.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
export HPC_TRAIN_JOIN_SECONDS=60

# begin NAME SERVERS WORKERS: nobody has been started yet; `start` does. Ports that nobody listens on.
begin() {
    local port=$((21000 + RANDOM % 8000)) i
    name=$1 servers=$2 workers=$3
    cluster='"ps":[' pids=()
    for ((i = 0; i < servers; port++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue; fi
        cluster+="$([ $i = 0 ] || echo ,)\"127.0.0.1:$port\"" i=$((i + 1))
    done
    cluster+='],"worker":['
    for ((i = 0; i < workers; i++)); do cluster+="$([ $i = 0 ] || echo ,)\"127.0.0.1:$((port + 100 + i))\""; done
    cluster+=']'
    rm -rf "${work:?}/$name" "$work/$name.safetensors" "$work/$name.json" "$work/$name".*.out
}

# start ROLE INDEX OPTION…: in the background; its pid is then in ${pids[ROLE.INDEX]}'s place, what it says in $work/NAME.ROLE.INDEX.out.
declare -A pid_of
start() {
    local role=$1 index=$2 rank=$2 writes=()
    shift 2
    [ "$role" = ps ] || rank=$((servers + index))
    [ "$role$index" != ps0 ] || writes=(--log-dir "$work/$name" --save-weights "$work/$name.safetensors" --summary-json "$work/$name.json")
    HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.$name\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index},\"rank\":$rank,
        \"local_rank\":$rank,\"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":$((servers + workers)),\"gpus\":0}]}" \
        limit 120 "$top_builddir/hpc-train" fit --strategy parameter-server --data "$work/pictures" --seed 3 --learning-rate 0.001 \
        --verbose 2 "${writes[@]}" "$@" >"$work/$name.$role.$index.out" 2>&1 &
    pid_of[$role$index]=$!
    pids+=($!)
}

# start_all OPTION…: all servers and workers.
start_all() {
    local i
    for ((i = 0; i < servers; i++)); do start ps $i "$@"; done
    for ((i = 0; i < workers; i++)); do start worker $i "$@"; done
}

# finish: waits for all; 0 when all ended with 0. The statuses are then in $statuses.
finish() {
    local pid worst=0
    statuses=
    for pid in "${pids[@]}"; do
        wait "$pid"
        statuses+="$? "
    done
    for pid in $statuses; do [ "$pid" = 0 ] || worst=1; done
    return $worst
}
said() { cat "$work/$name".*.out; }

# the program below `timeout`, to be killed or stopped
program_of() { pgrep -P "${pid_of[$1]}"; }

# trains: waits until server 0 has noted a few steps.
trains() {
    local i
    for ((i = 0; i < 600; i++)); do
        [ "$(cat "$work/$name/metrics.jsonl" 2>/dev/null | wc -c)" -lt 200 ] || return 0
        sleep 0.05
    done
    return 1
}

# same SERVERS WORKERS OPTION…: losses to 1e-4, weights to 1e-3 of the reference's.
same() {
    local losses weights servers_=$1 workers_=$2
    shift 2
    begin many "$servers_" "$workers_"
    start_all --steps-per-epoch "$steps" --global-batch-size $global_batch --ps-sync "$@"
    finish
    ok $? "$servers servers, $workers workers: $*" || { diag "$statuses" "$(said)"; return 1; }
    losses=$(losses_differ one many)
    ok "$(awk -v d="$losses" 'BEGIN { print !(d != "" && d + 0 <= 1e-4) }')" "$servers servers, $workers workers, $*: one rank's losses (to ${losses:-?})"
    weights=$("$top_builddir/tests/strategy/compare_weights" "$work/one.safetensors" "$work/many.safetensors")
    ok "$(awk -v d="$weights" 'BEGIN { print !(d != "" && d + 0 <= 1e-3) }')" "$servers servers, $workers workers, $*: and weights (to ${weights:-?})"
}

# ---- synchronous: one rank's result ---------------------------------------------------------------------------------
reference --model mnist-convnet --momentum 0.9
same 1 1 --model mnist-convnet --momentum 0.9
same 2 2 --model mnist-convnet --momentum 0.9
same 2 3 --model mnist-convnet --momentum 0.9 --backup-workers 1
done_testing
