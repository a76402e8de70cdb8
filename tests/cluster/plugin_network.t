#!/bin/bash
# plugin_network.t: the network that programs use, on nodes with two of them: eth0, by which Slurm and the nodes' names go, and a
# second one whose interface has another name on each node. HPC_TRAIN_TORCH_PYTHON: a Python with torch,
# and perhaps accelerate; HPC_TRAIN_TF_PYTHON: one with tensorflow.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
limit 60 "$sandbox" up 3 >/dev/null || { ok 1 "a cluster starts"; exit 1; }

# The second network: a bridge beside the sandbox's own.
names=(eth1 fast1 ens5)
sandbox_run --root sh -c 'ip link add br1 type bridge && ip link set br1 up'
for i in 0 1 2; do
    on_node "node$i" sh -c 'ip link add "$1" type veth peer name "second$2" netns 1 && ip address add "10.88.1.$(($2 + 1))/16" dev "$1" &&
        ip -6 address add "fd88::$(($2 + 1))/64" dev "$1" nodad && ip link set "$1" up &&
        nsenter --net=/proc/1/ns/net ip link set "second$2" master br1 up' x "${names[i]}" "$i"
done

told='env | grep -E "IFNAME|IFACE|if_include|HPC_TRAIN_(INTERFACE|ADDRESS|NETWORK_SET)|PET_|MASTER_ADDR" | sort | tr "\n" " "; echo'
tell() { sandbox_run srun -N3 --label --hpc-train "$@" bash -c "$told" | sort -n; }
everywhere='HPC_TRAIN_NETWORK_SET=.*'

# ---- what works is left alone ----------------------------------------------------------------------------------------
capture tell
is "$out" $'0: MASTER_ADDR=node0 \n1: MASTER_ADDR=node0 \n2: MASTER_ADDR=node0 ' "nodes whose names are good: nothing is set"
for i in 0 1 2; do
    on_node "node$i" sh -c 'ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up'
done
capture tell
is "$out" $'0: MASTER_ADDR=node0 \n1: MASTER_ADDR=node0 \n2: MASTER_ADDR=node0 ' "docker0 everywhere: nothing is set"

# ---- a network that is named -----------------------------------------------------------------------------------------
capture tell --hpc-train-network=eth1,fast1,ens5
for i in 0 1 2; do
    n=${names[i]}
    like "$(sed -n "s/^$i: //p" <<<"$out")" \
        "^FI_TCP_IFACE=$n GLOO_SOCKET_IFNAME=$n HOROVOD_GLOO_IFACE=$n HPC_TRAIN_ADDRESS=10.88.1.$((i + 1)) HPC_TRAIN_INTERFACE=$n $everywhere MASTER_ADDR=10.88.1.1 NCCL_SOCKET_IFNAME==$n OMPI_MCA_btl_tcp_if_include=$n PET_RDZV_CONF=is_host=$((i == 0)) TP_SOCKET_IFNAME=$n $" \
        "interfaces: node$i is told its own"
done
capture sandbox_run srun -N3 --hpc-train-network=10.88.0.0/16 bash -c 'echo $HPC_TRAIN_INTERFACE; tr , "\n" <<<"$TF_CONFIG" | grep -o "10[.0-9]*" | sort -u | tr "\n" " "; echo'
is "$(sort -u <<<"$out")" $'10.88.1.1 10.88.1.2 10.88.1.3 \nens5\neth1\nfast1' "addresses: TF_CONFIG has those of the network"
capture sandbox_run srun -N3 --hpc-train-network=fd88::/64 bash -c 'echo $MASTER_ADDR $HPC_TRAIN_ADDRESS'
is "$(sort <<<"$out")" $'fd88::1 fd88::1\nfd88::1 fd88::2\nfd88::1 fd88::3' "IPv6"
capture sandbox_run srun -N3 --hpc-train-network=eth1,fast1 sh -c 'echo ran'
is "$status $out" "78 " "a network that a node lacks is refused before the tasks start"
like "$err" "hpc-train: node0: node2 has no address on eth1,fast1; it has eth0=10.77.1.3 ens5=10.88.1.3" "the node is named"
like "$(grep -c 'has no address' <<<"$err")" "^1$" "once"
capture sandbox_run srun -N3 --hpc-train-network=docker0 true
like "$status $err" "^78 .*node0 has 172.17.0.1 on docker0, and so has node1: they cannot reach each other" "an interface with one address on several nodes is refused"

# ---- what others have chosen stays, and what a step has set ends with it ----------------------------------------------
capture sandbox_run env GLOO_SOCKET_IFNAME=mine srun -N3 --hpc-train-network=10.88.0.0/16 bash -c 'echo $GLOO_SOCKET_IFNAME'
is "$out" $'mine\nmine\nmine' "a variable of the user stays"
capture sandbox_run srun -N1 --hpc-train-network=10.88.0.0/16 bash -c 'srun --overlap -N1 --hpc-train=off bash -c "echo \${GLOO_SOCKET_IFNAME-none}"
    srun --overlap -N1 --hpc-train bash -c "echo \${GLOO_SOCKET_IFNAME-none}"'
is "$out" $'none\nnone' "steps within the step do not inherit it"

# ---- names that lead nowhere -----------------------------------------------------------------------------------------
for n in node1 node2; do
    on_node $n sh -c 'sed "s/^[^ \t]*\([ \t]*$1\)$/127.0.1.1\1/" /etc/hosts >/run/hosts && mount --bind /run/hosts /etc/hosts' x $n
done
is "$(on_node node1 getent hosts node1 | awk '{ print $1 }')" 127.0.1.1 "node1's own name is that of Debian's installer"
capture tell
like "$out" "^0: GLOO_SOCKET_IFNAME=(eth0|eth1) HOROVOD_GLOO_IFACE=[a-z0-9]* HPC_TRAIN_ADDRESS=10[.0-9]* HPC_TRAIN_INTERFACE=[a-z0-9]* $everywhere MASTER_ADDR=10[.0-9]*1 PET_RDZV_CONF=is_host=1 TP_SOCKET_IFNAME=(eth0|eth1) " \
    "auto: gloo is told where to listen"
capture tell --hpc-train-network=off
is "$out" $'0: MASTER_ADDR=node0 \n1: MASTER_ADDR=node0 \n2: MASTER_ADDR=node0 ' "off: nothing is set"

# ---- who sends where -------------------------------------------------------------------------------------------------
# bytes: what all nodes have sent by eth0, and by the second network.
bytes() {
    local i a b sum0=0 sum1=0
    for i in 0 1 2; do
        read -r a b < <(on_node "node$i" sh -c 'cat /sys/class/net/eth0/statistics/tx_bytes "/sys/class/net/$1/statistics/tx_bytes" | tr "\n" " "' x "${names[i]}")
        sum0=$((sum0 + a)) sum1=$((sum1 + b))
    done
    echo "$sum0 $sum1"
}
# by_second NAME CMD...: at least 99 % of the bytes go by the second network, and at least 20 MB; what a step costs without a
# network of its own goes by eth0 always, and is subtracted.
by_second() {
    local name=$1 a0 a1 b0 b1
    shift
    read -r a0 a1 < <(bytes)
    capture sandbox_run srun -N3 --hpc-train-network=10.88.0.0/16 "$@"
    read -r b0 b1 < <(bytes)
    diag "$name: $((b0 - a0 - idle)) bytes by eth0, $((b1 - a1)) by the second network"
    [ "$status" = 0 ] || diag "$err"
    ok "$((status != 0 || b1 - a1 < 20000000 || (b0 - a0 - idle) * 100 > b1 - a1))" "$name: 99 % of the bytes go by the network that was named"
}
read -r first _ < <(bytes)
sandbox_run srun -N3 --hpc-train-network=10.88.0.0/16 true
read -r second _ < <(bytes)
idle=$((second - first))

on_node node0 sh -c 'head -c 150000000 /dev/urandom >/tmp/data && chmod 644 /tmp/data'
by_second "the broadcast of data" --hpc-train-stage=/tmp/data --hpc-train-stage-mode=broadcast true

fit="hpc-train bench --model mobilenetv2 --batch-size 1 --steps 2 --strategy multi-worker-mirrored"
by_second "hpc-train's own TCP" --mpi=none $fit
if has_pmix; then by_second "Open MPI's tcp" --mpi=pmix env OMPI_MCA_btl=tcp,self $fit; fi

torch=${HPC_TRAIN_TORCH_PYTHON-}
if [ -n "$torch" ] && sandbox_run srun -N1 "$torch" -c 'import torch.distributed'; then
    sandbox_run sh -c 'cat >reduce.py' <<'END'
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(8_000_000)
for _ in range(4):
    dist.all_reduce(x)
assert x[0] == 3.0 ** 4, x[0]
dist.destroy_process_group()
END
    sandbox_run sh -c 'cat >rpc.py' <<'END'
import os, torch, torch.distributed.rpc as rpc
rank = int(os.environ["RANK"])
# nodes of the sandbox are one machine, whose processes TensorPipe would connect by its memory
options = rpc.TensorPipeRpcBackendOptions(_transports=["uv"], _channels=["basic"])
rpc.init_rpc("w%d" % rank, rank=rank, world_size=3, rpc_backend_options=options)
x = rpc.rpc_sync("w%d" % ((rank + 1) % 3), torch.add, args=(torch.ones(4_000_000), 1))
assert x[0] == 2, x[0]
rpc.shutdown()
END
    sandbox_run sh -c 'cat >accelerated.py' <<'END'
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
x = accelerator.reduce(torch.ones(8_000_000), "sum")
assert x[0] == 3, x[0]
accelerator.end_training()
END
    by_second "gloo" "$torch" reduce.py
    by_second "gloo by torchrun, c10d" bash -c 'unset RANK LOCAL_RANK WORLD_SIZE; exec "$0" -m torch.distributed.run --nnodes=3 --nproc-per-node=1 \
        --rdzv-backend=c10d --rdzv-id=1 --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" reduce.py' "$torch"
    by_second "gloo by torchrun, static" bash -c 'exec "$0" -m torch.distributed.run --nnodes=3 --nproc-per-node=1 --node-rank="$HPC_TRAIN_NODE_RANK" \
        --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" reduce.py' "$torch"
    by_second "TensorPipe" "$torch" rpc.py
    if sandbox_run "$torch" -c 'import accelerate' 2>/dev/null; then
        by_second "accelerate launch" bash -c 'exec "$0" -m accelerate.commands.launch --cpu --num_machines=3 --num_processes=3 \
            --machine_rank="$HPC_TRAIN_NODE_RANK" --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" accelerated.py' "$torch"
    fi
    # Without a network, by names; and where a node's own name leads to 127.0.1.1, which gloo would publish.
    capture sandbox_run srun -N3 --hpc-train bash -c 'exec "$0" -m torch.distributed.run --nnodes=3 --nproc-per-node=1 --rdzv-backend=c10d \
        --rdzv-id=1 --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" reduce.py' "$torch"
    ran "auto: gloo connects though two nodes' own names lead to 127.0.1.1"
    capture sandbox_run srun -N3 --hpc-train-network=off timeout 30 "$torch" reduce.py
    unlike "$status" "^0$" "off: it does not"
else
    skip "gloo" "HPC_TRAIN_TORCH_PYTHON does not name a Python with torch"
fi

tensorflow=${HPC_TRAIN_TF_PYTHON-}
if [ -n "$tensorflow" ] && sandbox_run srun -N1 "$tensorflow" -c 'import tensorflow' 2>/dev/null; then
    sandbox_run sh -c 'cat >mirrored.py' <<'END'
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
@tf.function
def step():
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.ones([8_000_000])), axis=None)
for _ in range(4):
    x = step()
assert x[0] == 3, x[0]
END
    by_second "TensorFlow" "$tensorflow" mirrored.py
else
    skip "TensorFlow" "HPC_TRAIN_TF_PYTHON does not name a Python with tensorflow"
fi
"$sandbox" down >/dev/null
done_testing
