#!/bin/bash
# hints.t: what the last lines of a run say can be typed as it stands, with any name, and what is gone after the step is not said.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
ln -s "$hpc_train" hpc-train
PATH=$work:$PATH
# typed WORDS: the command after these words in $out, as a shell reads it.
typed() {
    local line
    line=$(grep -oP "$1\K.*" <<<"$out" | head -n1)
    [ -n "$line" ] || return 127
    limit 60 bash -c "$line" 2>&1
}

# ---- a built-in model ----
capture fit --validation-data pictures --save-weights w.safetensors --log-dir log
is "$status" 0 "a run" || diag "$err"
like "$(typed 'to evaluate the weights: ')" "64 samples - accuracy: [0-9.]+ - loss: " "its weights are evaluated" || diag "$out"
typed "history: .*; to see it: " >said
is "$? $(grep -c -m1 mnist-convnet report.html)" "0 1" "its history is reported" || diag "$out" "$(cat said)"
rm -f report.html
capture fit --save-weights w.safetensors
unlike "$out" "to evaluate" "without validation data it is not known what would be evaluated"

# ---- names that a shell would take apart; a model that leaves its size open; another scaling ----
mkdir "it's a folder"
mv pictures "it's a folder/p q"
python3 - <<'END' || skip_all "no python3 here"
import json
layers = [{"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [None, None, None, 1], "name": "in"}},
          {"module": "keras.layers", "class_name": "Conv2D", "config": {"name": "c", "filters": 2, "kernel_size": [3, 3]}},
          {"module": "keras.layers", "class_name": "GlobalAveragePooling2D", "config": {"name": "g"}},
          {"module": "keras.layers", "class_name": "Dense", "config": {"name": "d", "units": 10, "activation": "softmax"}}]
json.dump({"module": "keras", "class_name": "Sequential", "config": {"name": "functional_24", "layers": layers}},
          open("it's a folder/$my model.json", "w"))
END
capture limit 60 hpc-train fit --model "it's a folder/\$my model.json" --data "it's a folder/p q" --validation-split 0.3 --resize 30x20 \
    --scale symmetric --steps-per-epoch 2 --save-weights "w \"2\".weights.h5" --log-dir "l*g" --verbose 2 --checkpoint-dir check
is "$status" 0 "a model of its own" || diag "$err"
val=$(grep -oP 'val_accuracy: [0-9.]+ - val_loss: [0-9.]+' <<<"$out" | sed 's/val_//g')
like "$(typed 'to evaluate the weights: ')" "77 samples - $val" "evaluated with its size and scaling, on what was held out" || diag "$out"
typed "history: .*; to see it: " >said
is "$? $(grep -c -m1 functional_24 report.html)" "0 1" "its history is reported" || diag "$out" "$(cat said)"
rm -f report.html

# ---- what is gone after the step ----
mkdir -p node/p
cp -r "it's a folder/p q" node/p
export SLURM_TMPDIR=$work/node
for here in "--save-weights node/w.safetensors --validation-data node/../it's a folder/p q" "--save-weights w.safetensors --validation-data node/p/p q"; do
    [[ $here =~ ^(.*)\ (.*)\ (--.*)\ (node.*)$ ]]
    capture limit 60 hpc-train fit --model mnist-convnet --data "node/p/p q" --steps-per-epoch 1 --verbose 2 "${BASH_REMATCH[@]:1}" --log-dir node/log
    is "$status" 0 "${BASH_REMATCH[*]:1}" || diag "$err"
    unlike "$out" "hpc-train (evaluate|report) " "no command with a path that is gone" || diag "$out"
done

# ---- more epochs, where the learning rate depends on their number ----
unset SLURM_TMPDIR
again() { limit 60 hpc-train fit --model mnist-convnet --data "it's a folder/p q" --steps-per-epoch 2 --batch-size 4 --verbose 2 --checkpoint-dir more "$@"; }
for schedule in cosine polynomial exponential:0.5; do
    rm -rf more
    capture again --schedule $schedule --epochs 2
    rises=0
    [ $schedule = exponential:0.5 ] && rises=1
    [[ $out == *"more --epochs goes on, and its learning rate begins higher than it ends here"* ]]
    is "$status $?" "0 $rises" "$schedule: whether more epochs change the learning rate" || diag "$out"
    capture again --schedule $schedule --epochs 4
    [[ $out == *"the learning rate goes on at 0.00"* ]]
    is "$status $?" "0 $rises" "and with more of them at which it goes on" || diag "$out" "$err"
done
done_testing
