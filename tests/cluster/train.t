#!/bin/bash
# Training through srun on the sandbox: on one and several nodes, the same curve for any number of ranks, what is shown and
# written, weights saved and evaluated.
# shellcheck disable=SC2154
. "${top_srcdir:-.}/tests/cluster/lib.sh"
. "$top_srcdir/tests/cluster/train_lib.sh"
on_cluster 3
need_training

for nodes in 1 3; do
    capture sandbox_run $launch -N$nodes -n$nodes $quick --optimizer adam --learning-rate 0.003 --data "$data" --epochs 2 --steps-per-epoch 40 --batch-size 32 \
        --log-dir "$work/log$nodes" --summary-json "$work/s$nodes.json"
    is "$status" 0 "fit on $nodes node(s) ends with 0"
    is "$(grep -c '^Epoch' <<<"$out")" 2 "each line is printed once on $nodes node(s)"
    like "$out" '40/40 - [0-9]+s - [0-9]+(ms|us|s)/step - accuracy: 0\.[0-9]{4} - loss: [0-9]\.[0-9]{4}' \
        "a line an epoch on $nodes node(s)"
    is "$err" "" "nothing on stderr on $nodes node(s)"
    summary=$work_here/s$nodes.json
    is "$(number workers "$summary") $(number global_batch "$summary") $(number steps "$summary")" \
        "$nodes $((32 * nodes)) 80" "the summary says how many took part ($nodes)"
    is "$(number parameters "$summary")" 62346 "the summary has the number of parameters ($nodes)"
    is "$(wc -l <"$work_here/log$nodes/metrics.jsonl")" 80 "metrics.jsonl has a line a step ($nodes)"
    is "$(wc -l <"$work_here/log$nodes/history.csv")" 3 "history.csv has a line an epoch ($nodes)"
    ok "$(awk -v a="$(number accuracy "$summary")" 'BEGIN { print !(a > 0.6) }')" "it learns on $nodes node(s)"
done

# The loss after each of the first 100 steps, for the same seed and global batch. The learning rate is small: from about
# 0.01 on for these pictures the first hundred steps amplify one rounding a thousand-fold and more, whatever computes them.
# HPC_TRAIN_LONG=1: on more numbers of ranks.
curve() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$work_here/curve$1/metrics.jsonl"; }
for ranks in 1 ${HPC_TRAIN_LONG:+2} 3 ${HPC_TRAIN_LONG:+4} 8; do
    capture sandbox_run $launch -n$ranks --cpus-per-task=1 $quick --data "$pictures" --seed 11 --global-batch-size 24 \
        --learning-rate 0.001 --steps-per-epoch 100 --log-dir "$work/curve$ranks" --verbose 0
    is "$status" 0 "100 steps on $ranks rank(s)"
    is "$out$err" "" "--verbose 0 says nothing ($ranks)"
    is "$(near <(curve 1) <(curve $ranks) 100 $((24 * positions)))" "" "$ranks rank(s) have the loss of one rank at each of 100 steps"
done

# A short last batch: with 7 ranks and a last batch of 3 pictures, four ranks have none in it.
for ranks in 1 7; do
    capture sandbox_run $launch -n$ranks --cpus-per-task=1 $quick --data synthetic:143 --global-batch-size 70 --learning-rate 0.01 \
        --log-dir "$work/short$ranks" --verbose 0
    is "$status" 0 "a pass with a last batch of 3 pictures on $ranks rank(s)"
done
is "$(wc -l <"$work_here/short7/metrics.jsonl")" 3 "the short batch is a step"
short() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$work_here/short$1/metrics.jsonl"; }
is "$(near <(short 1) <(short 7) 3 $((70 * positions)))" "" "ranks without a picture do not change the weights"

# With the strategy that is found to be the fastest there.
capture sandbox_run $launch -N2 ${quick% --strategy *} --data "$pictures" --validation-data "$pictures" --batch-size 32 --steps-per-epoch 10 \
    --save-weights "$work/w.safetensors" --summary-json "$work/v.json"
is "$status" 0 "fit with validation ends with 0"
like "$out" 'val_accuracy: 0\.[0-9]{4} - val_loss: [0-9]' "validation is shown"
loss=$(number val_loss "$work_here/v.json")
for nodes in 1 3; do
    capture sandbox_run $launch -N$nodes -n$nodes hpc-train evaluate --model mnist-convnet --data "$pictures" --weights "$work/w.safetensors"
    is "$status" 0 "evaluate on $nodes node(s) ends with 0"
    like "$out" "^64 samples - accuracy: $(printf %.4f "$(number val_accuracy "$work_here/v.json")") - loss: $(printf %.4f "$loss")\$" \
        "evaluate on $nodes node(s) finds what validation found"
done

# What Slurm knows is used: threads by -c, and every rank says who it is.
capture sandbox_run $launch -N1 -n1 -c2 $quick --data "$pictures" --batch-size 16 --steps-per-epoch 2 --verbose 0 --summary-json "$work/c.json"
is "$(number threads "$work_here/c.json")" "$(n=$(nproc); echo $((n < 2 ? n : 2)))" "threads follow --cpus-per-task"
capture sandbox_run $launch -N2 hpc-train info
is "$(grep -cE 'rank +[01] of 2' <<<"$out")" 2 "info tells each task's rank"

# Underscores, as Python programs write options.
capture sandbox_run $launch -N2 $quick --data "$pictures" --batch_size 16 --steps_per_epoch=2
is "$status" 0 "underscores are accepted for dashes"
like "$out" 'global batch 32' "with the same global batch"

if sandbox_run srun -N1 --hpc-train true >/dev/null 2>&1; then
    capture sandbox_run $launch -N2 --hpc-train --hpc-train-stage="$pictures" $quick --batch-size 16 --steps-per-epoch 3 --summary-json "$work/p.json"
    is "$status" 0 "with --hpc-train-stage --data is optional"
    is "$(number workers "$work_here/p.json")" 2 "the plugin's config is read"
else
    skip "--hpc-train-stage" "the plugin is not on this cluster"
fi
ok "$(wait_for none_left; echo $?)" "no process is left"
done_testing
