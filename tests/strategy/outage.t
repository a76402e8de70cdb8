#!/bin/bash
# outage.t: the network between the nodes is down, for less and for longer than the limit: ranks over TCP and parameter servers
# go on after a short outage, and after a long one all ends name the other and what may be the cause, and end with 69; long: staging,
# too. Nodes are network namespaces.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "only root may make network namespaces"
command -v ip >/dev/null || skip_all "there is no ip: apt-get install iproute2"
net=hpc-train-$$
on() { ip netns exec "$net-$1" "${@:2}"; }
ip netns add "$net-s" 2>/dev/null || skip_all "this kernel lets nobody make network namespaces"
# shellcheck disable=SC2016 # they are evaluated at the end
at_exit 'for node in s a b c; do ip netns del "$net-$node" 2>/dev/null; done'
on s ip link add name switch type bridge 2>/dev/null || skip_all "this kernel has no bridges"
on s ip link set dev switch up
number=0
for node in a b c; do # node a is 10.77.0.1, and its cable at the switch is named a
    number=$((number + 1))
    ip netns add "$net-$node"
    on s ip link add name $node type veth peer name eth0 netns "$net-$node"
    on s ip link set dev $node master switch up
    on $node ip address add 10.77.0.$number/24 dev eth0
    on $node ip link set dev eth0 up
    on $node ip link set dev lo up
done
cable() { on s ip link set dev "$1" "$2"; }

# begin DIR SERVERS OPTION…: rank i on node i, of three.
begin() {
    local dir=$work/$1 servers=$2 addresses=('"10.77.0.1:23001"' '"10.77.0.2:23002"' '"10.77.0.3:23003"') cluster rank
    mkdir "$dir"
    [ "$servers" = 0 ] || addresses=("${addresses[@]/2300/2400}")
    cluster="\"worker\":[$(IFS=,; echo "${addresses[*]:servers}")]"
    [ "$servers" = 0 ] || cluster="\"ps\":[${addresses[0]}],$cluster"
    for rank in 0 1 2; do
        ip netns exec "$net-${names[rank]}" bash "$top_srcdir/tests/strategy/rank.sh" "$dir" "{$cluster}" 3 3 "$servers" $rank "$hpc_train" fit \
            --data "$work/pictures" --model mnist-convnet --global-batch-size 42 --steps-per-epoch 3 --epochs 1000000 --verbose 2 "${@:3}" &
    done
}
names=(a b c)
# shellcheck disable=SC2016 # they are evaluated at the end
at_exit 'kill -KILL $(cat "$work"/*/pid.? 2>/dev/null) 2>/dev/null'
epochs() { sed -n '/^Epoch/p' "$work/$1/out.0" 2>/dev/null | wc -l; }
# trains DIR MORE: waits for so many more epochs, at most a minute.
trains() {
    local until_epoch=$(($(epochs "$1") + $2)) try
    for ((try = 0; try < 600; try++)); do
        [ "$(epochs "$1")" -lt $until_epoch ] || return 0
        [ ! -e "$work/$1/status.0" ] || return 1
        sleep 0.1
    done
    return 1
}
said() { grep -h '^hpc-train: ' "$work/$1/out.$2"; }

begin ranks 0 --strategy multi-worker-mirrored "${buckets[@]}" --comm tcp
begin servers 1 --strategy parameter-server
trains ranks 2 && trains servers 2
ok $? "both train" || diag "$(tail -n 3 "$work"/*/out.*)"

# The network loses all that is sent, then the cable of one node is out.
for who in 'a b' c; do
    # shellcheck disable=SC2086 # several words
    for node in $who; do cable $node down; done
    sleep 5.5
    for node in $who; do cable $node up; done
    trains ranks 3
    ok $? "5.5 s without the cable of $who: ranks go on" || diag "$(tail -n 3 "$work"/ranks/out.*)"
    trains servers 3
    ok $? "and parameter servers" || diag "$(tail -n 3 "$work"/servers/out.*)"
    is "$(cat "$work"/*/out.? | grep -c 'lost')" 0 "nobody was lost"
done

# Node a is cut off.
cable a down
for run in ranks servers; do
    for rank in 0 1 2; do
        for ((try = 0; try < 600; try++)); do [ ! -s "$work/$run/status.$rank" ] || break; sleep 0.1; done
        is "$(cat "$work/$run/status.$rank")" 69 "$run: after a longer outage rank $rank ends with 69"
    done
done
like "$(said ranks 0)" "rank [12] on [bc] was lost: no heartbeat for more than 6 s, nor from any other node: the network of a may be down; ending" \
    "the rank that is cut off says so"
maybe='no heartbeat for more than 6 s \(stopped, or its node or the network is down\)'
for rank in 1 2; do
    like "$(said ranks $rank)" "rank 0 on a was lost: $maybe; ending" "rank $rank names it, and what may be the cause"
    like "$(said servers $rank)" "parameter server 0 on 10.77.0.1:24001 was lost: $maybe" "and so does worker $((rank - 1))"
done
like "$(said servers 0)" "worker [01] on [bc] was lost: $maybe; 0 of 2 workers are here.*no worker is left" "the server names the workers"

# ---- staging: a broadcast survives half a minute ----
[ -n "${HPC_TRAIN_LONG-}" ] || { done_testing; exit; }
cable a up
on a tc qdisc add dev eth0 root tbf rate 40mbit burst 256k latency 50ms || { done_testing; exit 1; }
printf '10.77.0.%d:25000\n' 1 2 3 >"$work/nodes"
head -c 40M /dev/urandom >"$work/huge"
for down in 28 40; do
    for rank in 0 1 2; do
        mkdir "$work/$down.$rank"
        (cd "$work" && on ${names[rank]} "$top_builddir/hpc-train-stage" --to "$work/$down.$rank" --mode broadcast --nodes nodes --index $rank \
            --job $down --key key huge >"$work/staged.$rank" 2>&1
        echo $? >"$work/staged.status.$rank") &
    done
    sleep 3
    cable c down
    sleep $down
    cable c up
    wait
    if [ $down = 28 ]; then
        is "$(cat "$work"/staged.status.? | tr '\n' ' ')" "0 0 0 " "28 s without the cable of c: staging goes on" || diag "$(cat "$work"/staged.?)"
        is "$(cmp "$work/huge" "$work/28.2/huge" 2>&1)" "" "the copy is complete"
    else
        is "$(cat "$work"/staged.status.? | tr '\n' ' ')" "69 69 69 " "after a longer outage all end with 69" || diag "$(cat "$work"/staged.?)"
        like "$(cat "$work/staged.0")" "10.77.0.3: it was lost: nothing was heard of it for more than 30 seconds \(stopped, or" "the source names c"
        like "$(cat "$work/staged.2")" "10.77.0.[12]: it was lost: nothing was heard of it for more than 30 seconds \(stopped, or" "and c its neighbour"
    fi
done
done_testing
