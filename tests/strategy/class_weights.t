#!/bin/bash
# class_weights.t: weights of classes are the same on any number of ranks and by each strategy, and a checkpoint goes on with its own;
# so is a loss that is no cross-entropy. Metrics and confusion matrix are sums of integers: exactly those of one rank.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
echo '{"0": 5, "3": 0, "9": 0.5}' >"$work/weights.json"
model=(--model mnist-convnet)

# ---- what they do ----
reference "${model[@]}"
train 1 many "${model[@]}" "${from[@]}" --class-weight "$work/weights.json"
ok $? "one rank" || diag "$(cat "$work/many.out")"
unlike "$(losses_differ one many)" '^(0|)$' "weights change the loss"
echo '{"0": 1, "1": 1.0}' >"$work/ones.json"
train 1 many "${model[@]}" "${from[@]}" --class-weight "$work/ones.json"
is "$? $(cmp "$work/one.safetensors" "$work/many.safetensors" 2>&1)" "0 " "weights of 1 change nothing"

# ---- ranks and strategies ----
weighted=("${model[@]}" --class-weight "$work/weights.json")
reference "${weighted[@]}"
for strategy in "multi-worker-mirrored" "hybrid" "pipeline"; do
    same_as_one 2 "${weighted[@]}" --strategy "$strategy"
done
same_as_one 3 "${weighted[@]}" --strategy multi-worker-mirrored
same_as_one 1 "${weighted[@]}" --strategy mirrored --replicas 2
same_as_one 1 "${weighted[@]}" --strategy central-storage --replicas 3
weighted=("${model[@]}" --class-weight auto --loss categorical_focal_crossentropy --focal-gamma 1.5 --label-smoothing 0.1)
reference "${weighted[@]}"
same_as_one 2 "${weighted[@]}" --strategy multi-worker-mirrored

# ---- checkpoints ----
train 1 part "${weighted[@]}" "${from[@]}" --checkpoint-dir "$work/checkpoints" --checkpoint-every 6
ok $? "a run with checkpoints" || diag "$(cat "$work/part.out")"
for other in "--class-weight $work/weights.json" "--class-weight auto --loss huber" ""; do
    # shellcheck disable=SC2086 # several words
    train 1 other "${model[@]}" --label-smoothing 0 $other "${from[@]}" --checkpoint-dir "$work/checkpoints"
    is "$?" 78 "not with '$other'"
done
train 1 other "${model[@]}" --class-weight "$work/weights.json" --loss categorical_focal_crossentropy --focal-gamma 1.5 \
    --label-smoothing 0.1 "${from[@]}" --checkpoint-dir "$work/checkpoints"
like "$? $(cat "$work/other.out")" "78 .*is of a run with class weights" "the message names the weights"
train 1 other "${model[@]}" --class-weight auto --label-smoothing 0.1 "${from[@]}" --checkpoint-dir "$work/checkpoints"
like "$? $(cat "$work/other.out")" '78 .*is of a run with loss categorical_focal.*gamma 1.5.*this one has none' "or the loss"

train 1 own "${model[@]}" "${from[@]}" --checkpoint-dir "$work/own" --checkpoint-every 6
ok $? "a run with the model's own loss" || diag "$(cat "$work/own.out")"
train 1 other "${model[@]}" --loss binary_crossentropy "${from[@]}" --checkpoint-dir "$work/own"
like "$? $(cat "$work/other.out")" '78 .*is of a run with loss none, this one has binary_crossentropy' "is not continued with that of each output"

# ---- metrics ----
# scores RANKS: what evaluate has of the first weights.
scores() {
    limit 300 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" "$hpc_train" evaluate \
        "${model[@]}" --weights "$work/start.safetensors" --data "$work/pictures" --batch-size 16 --device cpu \
        --metrics precision,recall,f1,auc --confusion-matrix "$work/matrix.$1" --summary-json "$work/scores.$1" >"$work/scores.out" 2>&1
    ok $? "evaluate on $1 ranks" || diag "$(cat "$work/scores.out")"
    grep -v '"loss"' "$work/scores.$1" >"$work/counted.$1"
}
scores 1
is "$(awk -F, 'NR > 1 { for (i = 2; i <= NF; i++) { all += $i; if (i == NR) right += $i } } END { print all, right / all }' "$work/matrix.1")" \
    "64 $(sed -n 's/.*"accuracy": \([0-9.]*\).*/\1/p' "$work/scores.1" | awk '{ print $1 + 0 }')" "the matrix has all samples, and the accuracy"
for ranks in 2 3 4; do
    scores $ranks
    is "$(cmp "$work/matrix.1" "$work/matrix.$ranks" 2>&1)" "" "the matrix is one rank's"
    is "$(cmp "$work/counted.1" "$work/counted.$ranks" 2>&1)" "" "and the metrics are"
done
# With strategies that evaluate by themselves, too: weights that do not change give what evaluate has.
for strategy in "1 mirrored --replicas 3" "1 central-storage --replicas 2" "2 pipeline" "2 hybrid" "2 multi-worker-mirrored"; do
    # shellcheck disable=SC2086 # several words
    train ${strategy%% *} fitted "${model[@]}" "${from[@]}" --learning-rate 1e-30 --strategy ${strategy#* } --validation-data "$work/pictures" \
        --metrics f1,auc --confusion-matrix "$work/matrix"
    ok $? "fit with ${strategy#* }" || diag "$(cat "$work/fitted.out")"
    is "$(cmp "$work/matrix" "$work/matrix.1" 2>&1)" "" "has the matrix of evaluate"
    is "$(sed 's/.*,//' "$work/fitted/history.csv" | tr '\n' ' ')" "val_auc $(field fitted val_auc) " "and AUC in its history"
done
done_testing
