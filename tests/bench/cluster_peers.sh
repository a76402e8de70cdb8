#!/bin/bash
# cluster_peers.sh: W1 on two nodes of one core each, 64 pictures per node, links of 1 Gb/s: ours beside TensorFlow's
# MultiWorkerMirroredStrategy and torch's DistributedDataParallel over gloo, each started by `srun --hpc-train`; images per second
# and ours as a multiple, in Markdown. HPC_TRAIN_TF_PYTHON and HPC_TRAIN_TORCH_PYTHON name interpreters; one that is not named is
# left out. ROUNDS, STEPS and LINKS as in speedup.sh. AS_ROOT=1 where only root may run the interpreters.
set -u
# shellcheck source=tests/bench/speedup_lib.sh
. "$(dirname "$0")/speedup_lib.sh"

# peer PYTHON SCRIPT: images per second of both nodes together
peer() {
    on 2 "$1" "$2" "$steps" || { echo -; return; }
    sed -n 's/^images_per_second \([0-9.]*\)$/\1/p' "$home/out" | head -n 1
}

printf '### W1 on 2 nodes, 64 pictures per node, beside others\n\n%s\n\n' "$(described)"
printf '| link | system | images/s | ours is |\n|---|---|---|---|\n'
for link in ${LINKS:-1gbit}; do
    cluster 2 "$link"
    cp "$top"/tests/bench/cluster_peer_{tf,torch}.py "$home/"
    work=$(mktemp -d)
    for ((round = 0; round < rounds; round++)); do
        ours=$(rate 2 --model mnist-cnn --batch-size 64)
        echo "$ours" >>"$work/ours"
        for system in tf torch; do
            python=HPC_TRAIN_${system^^}_PYTHON
            [ -n "${!python-}" ] || continue
            theirs=$(peer "${!python}" cluster_peer_$system.py)
            echo "$theirs" >>"$work/$system"
            divide "$ours" "$theirs" >>"$work/$system.ratio"
        done
    done
    printf '| %s | hpc-train | %.0f | |\n' "$link" "$(median <"$work/ours")"
    for system in tf torch; do
        [ -e "$work/$system" ] || continue
        [ $system = tf ] && name="TensorFlow MultiWorkerMirroredStrategy" || name="torch DistributedDataParallel, gloo"
        printf '| %s | %s | %.0f | %sx |\n' "$link" "$name" "$(median <"$work/$system" | sed 's/^-$/nan/')" "$(median <"$work/$system.ratio")"
    done
    rm -r "$work"
done
