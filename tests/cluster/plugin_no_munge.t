#!/bin/bash
# plugin_no_munge.t: a cluster with Slurm's own credentials (auth/slurm), where no munged runs and no MPI starts the ranks, in a
# sandbox of its own: steps are prepared, data are broadcast, strategies train, all with the step's key.
# shellcheck disable=SC2016,SC2086,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
# shellcheck source=tests/cluster/train_lib.sh
. "$(dirname "$0")/train_lib.sh"
slurm_at_least 23.11 || skip_all "auth/slurm is of Slurm 23.11 and later"
own_sandbox
HPC_TRAIN_AUTH=slurm limit 60 "$sandbox" up 2 >/dev/null || { ok 1 "a cluster with auth/slurm starts"; exit 1; }
is "$(sandbox_run --root scontrol show config | sed -n 's/^AuthType *= //p')" auth/slurm "Slurm has its own credentials"
is "$(sandbox_run --root pgrep -x munged)" "" "no munged runs"
capture sandbox_run munge -n
ok $((status == 0)) "munge cannot create a credential"

# ---- the plugin ----
capture sandbox_run srun -N2 --mpi=none --hpc-train bash -c 'echo "$HPC_TRAIN_RANK $(stat -c %a "$HPC_TRAIN_KEY_FILE") $(wc -c <"$HPC_TRAIN_KEY_FILE")"'
is "$(sort <<<"$out")" $'0 600 65\n1 600 65' "each task has the step's key" || diag "$err"
capture on_node node0 /opt/hpc-train/bin/hpc-train info --admin
is "$status" 0 "hpc-train-check reports no error" || diag "$out$err"
head -c 20M /dev/urandom >"$own/shared/home/user/file"
for mode in auto broadcast copy; do
    capture sandbox_run srun -N2 --mpi=none --hpc-train-stage=/shared/home/user/file --hpc-train-stage-mode=$mode \
        sh -c 'cmp /shared/home/user/file "$SLURM_TMPDIR/file" && echo the same'
    is "$status $out" $'0 the same\nthe same' "staged, $mode" || diag "$err"
done
capture sandbox_run sbatch --wait -N2 --output=/shared/home/user/o --hpc-train --wrap 'srun --mpi=none sh -c "stat -c %a \$HPC_TRAIN_KEY_FILE"'
is "$status $(cat "$own/shared/home/user/o")" $'0 600\n600' "a batch job's step"
capture sandbox_run sh -c 'printf "login:21000\nnode0:21000\n" >nodes; hpc-train-stage --to "$HOME/to" --nodes nodes --index 0 --job 1 --mode broadcast file'
is "$status" 78 "hpc-train-stage by hand, without a key: 78"
like "$err" "has no key and no munged answers" "says what is missing"

# ---- training ----
[ -e "$fashion/train-images-idx3-ubyte.gz" ] || { done_testing; exit; }
data=/shared/home/user/data
mkdir "$own/$data" && cp "$fashion"/*.gz "$own/$data" && chmod -R a+rX "$own/$data"
few="--data $data --steps-per-epoch 20 --global-batch-size 256 --seed 3 --learning-rate 0.001 --log-dir /shared/home/user/log"
losses() { tr -d '{},":' <"$own/shared/home/user/log$1/metrics.jsonl" | awk '{ print $6 }'; }
capture sandbox_run srun -N1 --mpi=none --hpc-train $fit $few-1
ran "one rank trains"
capture sandbox_run srun -N2 --mpi=none --hpc-train-stage=$data $fit $few-2
ran "two ranks train on staged data"
like "$out" "connected by TCP" "connected by TCP"
is "$(near <(losses -1) <(losses -2) 20 $((256 * positions)))" "" "with the losses of one rank at each of 20 steps"
capture sandbox_run srun -N2 -n3 --mpi=none --hpc-train-roles=ps:1,worker:2 hpc-train fit --model mnist-cnn --strategy parameter-server $few-3
ran "a parameter server and its workers"
if has_pmix; then
    capture sandbox_run srun -N2 --mpi=pmix --hpc-train $fit $few-4
    ran "two ranks over MPI"
    is "$(losses -4)" "$(losses -2)" "with identical losses"
fi
capture sandbox_run srun -N2 --mpi=none $fit $few-5
is "$status" 78 "without the plugin: status 78 instead of two separate trainings"
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained"
done_testing
