#!/bin/bash
# plugin_server.t: staging from a file server whose files each node numbers by itself (sshfs), in a sandbox of its own.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
capture limit 60 env HPC_TRAIN_PLUGSTACK_ARGS=log=info "$sandbox" up 3 --server unlimited
[[ $status != 78 ]] || skip_all "a file server: $err"
is "$status" 0 "a sandbox with a file server" || { diag "$err"; exit 1; }

mkdir "$own/shared/set" && head -c 20M /dev/urandom >"$own/shared/set/data" && chmod -R a+rX "$own/shared/set"
sum=$(md5sum <"$own/shared/set/data")
# A node numbers files as it meets them.
touch "$own"/shared/home/user/met{1,2}
# shellcheck disable=SC2016
is "$(sandbox_run srun -N3 bash -c 'for ((i = 1; i <= SLURM_NODEID; i++)); do stat met$i >/dev/null; done; stat -c %i /shared/set' | sort -u | wc -l)" \
    3 "a folder of the server has another number on each node"
# shellcheck disable=SC2016
check='md5sum <"$SLURM_TMPDIR/set/data"'
capture sandbox_run srun -N3 --hpc-train-stage=/shared/set sh -c "$check"
ran "auto: a folder from the server"
is "$(sort <<<"$out" | uniq -c | sed 's/^ *//')" "3 $sum" "is the same on all nodes"
like "$err" "/shared/set: read here and sent to the other nodes: 21 MB in 2 entries are read once instead of by 3 nodes" \
    "and was read once"

# What one node mounts elsewhere is another set, though of one path, size and time.
head -c 20M /dev/zero >"$own/shared/other" && touch -r "$own/shared/set/data" "$own/shared/other" && chmod a+r "$own/shared/other"
on_node node1 mount --bind /shared/other /shared/set/data || diag "it cannot be mounted"
capture sandbox_run srun -N3 --hpc-train-stage=/shared/set/data:set/data sh -c "$check"
ran "auto: a file that one node has from elsewhere on the server"
is "$(sort <<<"$out" | uniq -c | sort -n | sed 's/^ *//')" "1 $(md5sum <"$own/shared/other")"$'\n'"2 $sum" "each node copies its own"
like "$err" "/shared/set/data: copied by each node: not all nodes see the same source" "because the sources differ"
done_testing
