#!/bin/bash
# examples.t: the example programs of TensorFlow and PyTorch train on two nodes from their own job scripts, and
# TensorFlow's ParameterServerStrategy from roles. Skipped where
# a framework is missing; HPC_TRAIN_TF_PYTHON and HPC_TRAIN_TORCH_PYTHON name the interpreters (default python3).

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/../cluster/plugin_lib.sh"
needs_plugin
cp "$top_srcdir"/etc/examples/mnist_* "$work_here" && sandbox_run --root chmod -R a+rX "$work"
sandbox_run --root chmod 777 "$work"
[ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] || skip_all "no dataset-fashion-mnist"

# The same program for both: few steps, so that it takes seconds.
run_limit=300 # the frameworks take long to start on a busy machine
submit() { # PYTHON SCRIPT
    capture sandbox_run bash -c "cd '$work' && PYTHON='$1' EPOCHS=2 STEPS=30 TF_CPP_MIN_LOG_LEVEL=3 OMP_NUM_THREADS=1 \
        sbatch --wait --output='$work/$2.out' '$2'"
    ran "$2 succeeds" || diag "$(tail -n 30 "$work_here/$2.out")"
    out=$(cat "$work_here/$2.out")
    # Both ranks trained one model: what they report of it is the same, and better than chance.
    is "$(grep -c " of 2: " <<<"$out")" 2 "$2: two processes took part"
    mapfile -t results < <(grep " of 2: " <<<"$out")
    diag "${results[@]}"
    is "$(sed -n 's/.* of 2: //p' <<<"$out" | sort -u | wc -l)" 1 "$2: with the same result"
    ok "$(awk '/ of 2: /{ for (i = 1; i < NF; i++) if ($i == "accuracy") bad = bad || $(i + 1) < 0.4 } END { exit bad }' <<<"$out"; echo $?)" \
        "$2: which is better than chance" || diag "$out"
}

# again PYTHON SCRIPT MARK DONE: a task is killed once MARK is printed, after the first epoch, and the run goes on from there; DONE
# is what the first epoch prints.
again() {
    local job pid
    rm -rf "${work_here:?}"/{backup,checkpoint.pt,"$2.out"}
    job=$(sandbox_run bash -c "cd '$work' && PYTHON='$1' EPOCHS=4 STEPS=100 TF_CPP_MIN_LOG_LEVEL=3 OMP_NUM_THREADS=1 sbatch --parsable --output='$work/$2.out' '$2'")
    until grep -qE "$3" "$work_here/$2.out" 2>/dev/null || ! sandbox_run squeue --noheader --jobs "$job" | grep -q .; do sleep 0.2; done
    for pid in $(pgrep -f "mnist_[a-z]*.py"); do
        ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURM_PROCID=1" || kill -KILL "$pid"
    done
    while sandbox_run squeue --noheader --jobs "$job" 2>/dev/null | grep -q .; do sleep 0.5; done
    out=$(cat "$work_here/$2.out")
    like "$out" "the run has failed: .*Killed.*starting again, 2 tasks" "$2: a task that is killed starts the run again" || diag "$out"
    is "$(grep -c " of 2: " <<<"$out")" 2 "$2: which ends" || diag "$out"
    ok "$([ "$(grep -cE "$4" <<<"$out")" = 1 ]; echo $?)" "$2: without the epoch that was done"
}
tf=${HPC_TRAIN_TF_PYTHON:-python3}
unlike "$(sed '/^"""/,/"""$/d' "$work_here/mnist_tensorflow.py")" "TF_CONFIG|SLURM" "the program has no TF_CONFIG code of its own"
if sandbox_run srun -N1 "$tf" -c 'import tensorflow, tf_keras' 2>/dev/null; then
    submit "$tf" mnist_tensorflow.sbatch
    again "$tf" mnist_tensorflow.sbatch '^Epoch 2/4' '^Epoch 1/4'
    cp "$(dirname "$0")/parameter_server.py" "$work_here" && sandbox_run --root chmod -R a+rX "$work"
    # srun ends the workers and the server, which wait for ever, after the chief
    capture sandbox_run env TF_CPP_MIN_LOG_LEVEL=3 srun --hpc-train-roles=chief,worker:2,ps --wait=2 -N2 -n4 \
        "$tf" "$work/parameter_server.py"
    is "$out" "chief: x is 2.00 on job:ps/replica:0, 2 workers" "ParameterServerStrategy reads the roles" || diag "$err"
else
    skip "ParameterServerStrategy" "no tensorflow for $tf"
    skip "MultiWorkerMirroredStrategy" "no tensorflow with tf_keras for $tf"
fi
torch=${HPC_TRAIN_TORCH_PYTHON:-python3}
if sandbox_run srun -N1 "$torch" -c 'import torch.distributed' 2>/dev/null; then
    submit "$torch" mnist_torch.sbatch
    again "$torch" mnist_torch.sbatch '^epoch 1: ' '^epoch 1: '
else
    skip "DistributedDataParallel" "no torch for $torch"
fi

done_testing
