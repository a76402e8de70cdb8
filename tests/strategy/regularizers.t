#!/bin/bash
# regularizers.t: penalties of weights are in the loss, and once in an update, by each strategy on any number of ranks: losses and
# weights of one rank; a checkpoint goes on with its own.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"

# penalize FILE NAME: a model with a regularizer for every kernel, bias, scale and offset, $work/NAME.json.
penalize() {
    python3 - "$1" "$work/$2.json" <<'END'
import json, sys
model, number = json.load(open(sys.argv[1])), 0
for layer in model["config"]["layers"]:
    for key, value in layer["config"].items():
        if key.endswith("_regularizer") and key != "activity_regularizer" and value is None:
            kinds = [("L1", {"l1": 0.002}), ("L2", {"l2": 0.01}), ("L1L2", {"l1": 0.001, "l2": 0.004})]
            name, factors = kinds[number % 3]
            layer["config"][key] = {"class_name": name, "config": factors}
            number += 1
json.dump(model, open(sys.argv[2], "w"))
END
}
dense() { # a model without BatchNormalization, in which every part of hybrid has something, and so has each stage
    cat <<'END'
{"class_name": "Sequential", "config": {"name": "dense", "layers": [
  {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28, 1], "name": "input"}},
  {"class_name": "Conv2D", "config": {"name": "conv", "filters": 6, "kernel_size": [3, 3], "activation": "tanh",
    "kernel_regularizer": null, "bias_regularizer": null}},
  {"class_name": "MaxPooling2D", "config": {"name": "pool"}},
  {"class_name": "Flatten", "config": {"name": "flatten"}},
  {"class_name": "Dense", "config": {"name": "wide", "units": 64, "activation": "tanh", "kernel_regularizer": null,
    "bias_regularizer": null}},
  {"class_name": "Dense", "config": {"name": "head", "units": 10, "activation": "softmax", "kernel_regularizer": null,
    "bias_regularizer": null}}]}}
END
}
dense >"$work/bare.json"
penalize "$work/bare.json" dense
penalize "$residual" residual
penalize "$wide" wide

# ---- what they do ----
capture "$top_builddir/hpc-train" summary --model "$work/dense.json"
like "$out" "Regularizer: conv/kernel l1=0.002.*Regularizer: conv/bias l2=0.01.*Regularizer: wide/kernel l1=0.001 l2=0.004" "summary names them"
reference --model "$work/dense.json" --momentum 0.9
train 1 many --model "$work/bare.json" --momentum 0.9 "${from[@]}"
ok $? "one rank without penalties" || diag "$(cat "$work/many.out")"
ok "$(awk -v d="$(losses_differ one many)" 'BEGIN { print !(d > 0.1) }')" "the loss has them"

# ---- ranks and strategies ----
cases=("2 --strategy multi-worker-mirrored --bucket-bytes 4096" "3 --strategy multi-worker-mirrored" "2 --strategy hybrid --hybrid-form rows"
    "3 --strategy hybrid --hybrid-form columns" "3 --strategy hybrid --hybrid-form back" "2 --strategy pipeline --micro-batches 5"
    "3 --strategy pipeline" "1 --strategy mirrored --replicas 3" "2 --strategy mirrored --replicas 2"
    "1 --strategy central-storage --replicas 2" "2 --strategy multi-worker-mirrored --allow-lossy --compress powersgd:256 --compress-warmup 0")
for case in "${cases[@]}"; do
    # shellcheck disable=SC2086 # several words
    same_as_one ${case%% *} --model "$work/dense.json" --momentum 0.9 ${case#* }
done
plain=(--model "$work/dense.json") # backward could update by itself
reference "${plain[@]}"
same_as_one 2 "${plain[@]}" --strategy hybrid
same_as_one 2 "${plain[@]}" --strategy local-sgd --allow-lossy --local-steps 1
reference --model "$work/residual.json" --sync-batch-norm --optimizer adam
same_as_one 3 --model "$work/residual.json" --sync-batch-norm --optimizer adam --strategy multi-worker-mirrored
same_as_one 2 --model "$work/residual.json" --sync-batch-norm --optimizer adam --strategy hybrid
reference --model "$work/wide.json" --sync-batch-norm --gradient-accumulation 3 --global-clip-norm 1
same_as_one 2 --model "$work/wide.json" --sync-batch-norm --gradient-accumulation 3 --global-clip-norm 1 --strategy hybrid --hybrid-form back
reference --model "$work/residual.json" --freeze 'stem,block*,norm'
same_as_one 3 --model "$work/residual.json" --freeze 'stem,block*,norm' --strategy pipeline --micro-batches 3

# ---- evaluation between epochs ----
for strategy in "1 mirrored --replicas 3" "2 pipeline" "2 hybrid" "2 multi-worker-mirrored"; do
    reference "${plain[@]}"
    # shellcheck disable=SC2086 # several words
    train ${strategy%% *} fitted "${plain[@]}" "${from[@]}" --learning-rate 1e-30 --strategy ${strategy#* } --validation-data "$work/pictures"
    ok $? "fit with ${strategy#* }" || diag "$(cat "$work/fitted.out")"
    limit 60 "$top_builddir/hpc-train" evaluate "${plain[@]}" --weights "$work/start.safetensors" --data "$work/pictures" --device cpu \
        --summary-json "$work/scores.json" >"$work/scores.out" 2>&1
    differ=$(awk -v a="$(field fitted val_loss)" -v b="$(field scores loss)" 'BEGIN { print a > b ? a / b - 1 : b / a - 1 }')
    ok "$(awk -v d="$differ" 'BEGIN { print !(d < 1e-5) }')" "its val_loss is that of evaluate (to $differ)"
done

# ---- checkpoints ----
train 1 part "${plain[@]}" "${from[@]}" --checkpoint-dir "$work/checkpoints" --checkpoint-every 6
ok $? "a run with checkpoints" || diag "$(cat "$work/part.out")"
sed 's/0.004/0.005/' "$work/dense.json" >"$work/changed.json"
train 1 other --model "$work/changed.json" "${from[@]}" --checkpoint-dir "$work/checkpoints" --epochs 2
like "$? $(cat "$work/other.out")" '78 .*is of a run with regularizers .*wide/kernel l1=0.001 l2=0.004.*this one has .*l2=0.005' "not with other penalties"
train 1 other "${plain[@]}" --checkpoint-dir "$work/checkpoints" --epochs 2
ok $? "but with its own" || diag "$(cat "$work/other.out")"

# ---- refusals ----
for key in activity_regularizer kernel_constraint; do
    sed "s/\"name\": \"wide\"/&, \"$key\": {\"class_name\": \"L2\", \"config\": {}}/" "$work/dense.json" >"$work/refused.json"
    train 1 bad --model "$work/refused.json"
    like "$? $(cat "$work/bad.out")" "65 .*layer \"wide\" \\(Dense\\): $key .*is not supported" "$key is refused"
done
sed 's/"L1L2", "config": {[^}]*}/"OrthogonalRegularizer", "config": {"factor": 0.01}/' "$work/dense.json" >"$work/refused.json"
train 1 bad --model "$work/refused.json"
like "$? $(cat "$work/bad.out")" '65 .*layer "wide" \(Dense\): kernel_regularizer OrthogonalRegularizer is not supported; there are: L1, L2 and L1L2' "so is an orthogonal one"
done_testing
