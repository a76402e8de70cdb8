#!/bin/bash
# plugin_cloud.t: nodes that register themselves, as in a cloud: slurm.conf does not know them, and their names resolve
# nowhere. Up to 23.02 their addresses come as a variable, from 23.11 on with the job's credential.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
HPC_TRAIN_NODE_NAMES=x HPC_TRAIN_DYNAMIC_NODES=1 limit 60 "$sandbox" up 3 >/dev/null || { ok 1 "a cluster of dynamic nodes starts"; exit 1; }
like "$(sandbox_run sinfo --noheader --Node --format=%N | sort | tr '\n' ' ')" "^x0 x1 x2 $" "three nodes have registered themselves"
like "$(sandbox_run --root cat /etc/slurm/slurm.conf | grep -c ^NodeName)" "^0$" "slurm.conf names none"

# Each task says its rank, its node's own address, whether its name resolves, and the addresses that it was given.
tell='echo "$SLURM_PROCID $(hostname -I 2>/dev/null || ip -4 -o addr show eth0 | sed "s|.* inet \([0-9.]*\)/.*|\1|")" \
    "$(getent hosts "$SLURMD_NODENAME" >/dev/null && echo resolves || echo unknown) $TF_CONFIG"'
capture sandbox_run srun -N3 --hpc-train bash -c "$tell"
ran "a step on them runs"
is "$(awk '{ print $3 }' <<<"$out" | sort -u)" unknown "their names cannot be resolved"
wrong=$(python3 - "$out" <<'END'
import json, sys
for line in sys.argv[1].splitlines():
    rank, own, _, config = line.split(None, 3)
    config = json.loads(config)
    named = config["cluster"]["worker"][int(rank)].rsplit(":", 1)[0]
    if named != own or config["task"]["index"] != int(rank):
        print(rank, own, named)
END
)
is "$wrong" "" "each rank has its node's address"
like "$(grep '^0 ' <<<"$out")" '"10\.77\.1\.[0-9]+:[0-9]+","10\.77\.1\.[0-9]+:[0-9]+","10\.77\.1\.[0-9]+:[0-9]+"' "all addresses are numeric"

# Whoever connects does so by these addresses.
sandbox_run bash -c 'mkdir -p set && head -c 100000 /dev/urandom >set/a && sha256sum <set/a >set.sum'
capture sandbox_run srun -N3 --hpc-train --hpc-train-stage=/shared/home/user/set --hpc-train-stage-mode=broadcast \
    bash -c 'sha256sum <$SLURM_TMPDIR/set/a | cmp - /shared/home/user/set.sum && echo same'
is "$out" $'same\nsame\nsame' "data is broadcast among them" || diag "$err"

# The nodes find their GPUs by gres.conf.
capture sandbox_run srun -N1 -n2 --gres=gpu:2 --hpc-train bash -c 'echo "$SLURM_LOCALID: $CUDA_VISIBLE_DEVICES $HPC_TRAIN_GPU"'
is "$(sort <<<"$out")" $'0: 0,1 0\n1: 0,1 1' "each task has its own GPU" || diag "$err"
if slurm_at_least 23.11; then
    capture sandbox_run srun -N1 -n2 --gpus-per-task=1 --gres-flags=allow-task-sharing --hpc-train \
        bash -c 'echo "$SLURM_LOCALID: $CUDA_VISIBLE_DEVICES $HPC_TRAIN_GPU"'
    is "$(sort <<<"$out")" $'0: 0 0\n1: 1 1' "--gres-flags=allow-task-sharing: each task is bound to one, by its local id" || diag "$err"
else
    capture sandbox_run srun -N1 -n2 --gpus-per-task=1 --gres-flags=allow-task-sharing true
    like "$err" "Invalid --gres-flags" "--gres-flags=allow-task-sharing is of 23.11 and later"
fi
"$sandbox" down >/dev/null
done_testing
