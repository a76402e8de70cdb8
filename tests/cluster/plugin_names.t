#!/bin/bash
# plugin_names.t: in a sandbox of its own, nodes whose NodeName is neither their host name nor resolves anywhere: the tasks
# are told addresses by which they reach each other.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
[ "$(id -u)" = 0 ] || skip_all "the sandbox needs root"
installed=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}/root/opt/hpc-train
[ -e "$installed/lib/slurm/spank_hpc_train.so" ] || skip_all "the plugin is not installed in the sandbox's folder"
own=$(mktemp -d /tmp/hpc-train-sandbox.XXXXXX)
export HPC_TRAIN_SANDBOX=$own
at_exit "'$sandbox' down >/dev/null; rm -rf '$own'"
mkdir -p "$own/root/opt"
cp -a "$installed" "$own/root/opt"
HPC_TRAIN_NODE_NAMES=x limit 60 "$sandbox" up 2 >/dev/null
ok $? "a sandbox starts whose nodes are x0 and x1 to Slurm" || exit 1

capture sandbox_run srun -N2 bash -c 'echo "$SLURMD_NODENAME $(hostname) $(getent hosts x0 x1)"'
is "$(sort <<<"$out")" $'x0 node0 \nx1 node1 ' "names and host names differ, and the names resolve nowhere"
capture sandbox_run srun --hpc-train-port=23000 -N2 bash -c 'echo "$SLURM_PROCID $TF_CONFIG $MASTER_ADDR $HPC_TRAIN_CONFIG"'
ran "a step there is prepared"
like "$(sort <<<"$out")" '^0 \{"cluster":\{"worker":\["10.77.1.1:23000","10.77.1.2:23000"\]\}.* 10.77.1.1 ' "by their addresses"
like "$out" '"nodes":\[\{"name":"x0","tasks":1,"gpus":0\},\{"name":"x1"' "and named as Slurm names them"
# Its ranks meet at these addresses before anything else.
capture sandbox_run env HPC_TRAIN_JOIN_SECONDS=20 srun --hpc-train -N2 hpc-train fit --model mnist-cnn \
    --data /usr/share/datasets/fashion-mnist --epochs 1 --steps-per-epoch 2
ran "two ranks of hpc-train find each other"
capture sandbox_run srun --hpc-train -N1 -n1 printenv MASTER_ADDR : -N1 -n1 printenv MASTER_ADDR
is "$out" $'10.77.1.1\n10.77.1.1' "also over components"
done_testing
