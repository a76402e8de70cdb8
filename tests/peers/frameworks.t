#!/bin/bash
# frameworks.t: programs of TensorFlow and PyTorch find each other through the plugin's variables, without code of their
# own for it. HPC_TRAIN_TF_PYTHON and HPC_TRAIN_TORCH_PYTHON name the interpreters that have them (default python3).

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/../cluster/plugin_lib.sh"
needs_plugin
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/tf_config.py" "$here/torch_gloo.py" "$work_here" && sandbox_run --root chmod -R a+rX "$work"

tf=${HPC_TRAIN_TF_PYTHON:-python3}
if sandbox_run srun -N1 "$tf" -c 'import tensorflow' 2>/dev/null; then
    capture sandbox_run srun --hpc-train -N2 -n4 --ntasks-per-node=2 "$tf" "$work/tf_config.py"
    ran "TFConfigClusterResolver accepts the TF_CONFIG of 2x2 tasks"
    want=
    for rank in 0 1 2 3; do want+="rank $rank: worker $rank of 4, address of this node: True, in TensorFlow's order: True"$'\n'; done
    is "$(sort <<<"$out")" "${want%$'\n'}" "it reads the cluster of TF_CONFIG"
else
    skip "TFConfigClusterResolver" "no tensorflow for $tf"
fi

torch=${HPC_TRAIN_TORCH_PYTHON:-python3}
if sandbox_run srun -N1 "$torch" -c 'import torch.distributed' 2>/dev/null; then
    capture sandbox_run srun --hpc-train-env=torch -N2 "$torch" "$work/torch_gloo.py"
    ran "two processes of torch.distributed connect"
    is "$(sort <<<"$out" | sed 's/ on [a-z0-9]*//')" $'rank 0 of 2: sum 3\nrank 1 of 2: sum 3' "and sum a tensor"
    is "$(sort -u <<<"${out//rank ? of 2/}" | wc -l)" 2 "on two nodes"
else
    skip "torch.distributed" "no torch for $torch"
fi

done_testing
