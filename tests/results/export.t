#!/bin/bash
# export.t: hpc-train export writes a model with weights, or those of a checkpoint, in the format that the file's name asks for;
# what other programs make of them: tests/peers/onnx.t.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
train=$hpc_train
fit --save-weights w.safetensors --checkpoint-dir ckpt >/dev/null
export_model() { capture limit 60 "$train" export --model mnist-convnet --weights w.safetensors "$@"; }
same() { is "$(cmp "$1" "$2" 2>&1)" "" "$3"; }
magic() { head -c "$2" "$1" | od -An -c | tr -d ' \n'; }

# ---- formats ----
export_model --output m.onnx
is "$status $err" "0 " "exports as ONNX"
is "$out" "m.onnx: model mnist-convnet, 62346 parameters" "and says what it is"
is "$(magic m.onnx 13)" '\b\b022\thpc-train' "with version 8 of the format and the name of the program"
ok "$([ "$(stat -c %s m.onnx)" -gt $((4 * 62346)) ]; echo $?)" "the weights are in it"
export_model --output again.onnx --format onnx
same m.onnx again.onnx "the same model is the same file"
export_model --output s.safetensors --format safetensors
same w.safetensors s.safetensors "safetensors are what fit writes"
export_model --output m.json
capture limit 60 "$train" predict --model m.json --weights w.safetensors --data pictures --output json.csv
limit 60 "$train" predict --model mnist-convnet --weights w.safetensors --data pictures --output own.csv >/dev/null
same json.csv own.csv "the model as Keras' JSON predicts the same"
export_model --output m.keras
if [ "$status" = 78 ]; then
    skip "Keras' archive" "this build has no HDF5"
else
    is "$status $(magic m.keras 4)" "0 PK003004" "an archive for Keras"
    export_model --output m.weights.h5
    if command -v python3 >/dev/null; then
        is "$(python3 - <<'END'
import json, zipfile
parts = zipfile.ZipFile("m.keras")
print(parts.testzip(), *sorted(parts.namelist()))
print(json.loads(parts.read("config.json"))["class_name"], parts.read("model.weights.h5") == open("m.weights.h5", "rb").read())
END
        )" "None config.json metadata.json model.weights.h5
Sequential True" "with model and weights"
    fi
    export_model --output again.keras
    same m.keras again.keras "the same model is the same archive"
    is "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -user "$(id -un)" -name 'hpc-train-keras-*' 2>/dev/null | wc -l)" 0 "nothing is left behind"
    capture limit 60 env TMPDIR="$work/none" "$train" export --model mnist-convnet --weights w.safetensors --output t.keras
    like "$status $err" "^74 .*$work/none/hpc-train-keras-.*TMPDIR" "a TMPDIR that is not there is named"
fi

# ---- checkpoints ----
export_model --weights ckpt --output c.safetensors
is "$status $err" "0 " "exports the newest checkpoint"
same w.safetensors c.safetensors "which has the run's last weights"
export_model --weights "$(echo ckpt/step-*4)" --output c.onnx
same m.onnx c.onnx "one checkpoint, as ONNX"
capture limit 60 "$train" evaluate --model mnist-convnet --weights ckpt --data pictures
is "$out" "$(limit 60 "$train" evaluate --model mnist-convnet --weights w.safetensors --data pictures)" "evaluate reads a checkpoint, too"
capture limit 60 "$train" export --model mnist-cnn --weights ckpt --output x.onnx
like "$status $err" "^65 .*ckpt/step-[0-9]*: " "a checkpoint of another model"
part=$(echo ckpt/step-*4/part-00000.safetensors)
printf 'x' | dd of="$part" bs=1 seek=$(($(stat -c %s "$part") - 1)) conv=notrunc status=none
export_model --weights "$(dirname "$part")" --output d.onnx
like "$status $err" "^65 .*step-[0-9]*4" "a damaged checkpoint"
is "$(ls d.onnx x.onnx 2>&1 | grep -c 'No such')" 2 "nothing is written of them"
mkdir empty
export_model --weights empty --output e.onnx
like "$status $err" "^66 .*empty" "a folder without checkpoints"

# ---- errors ----
export_model --output none/m.onnx
like "$status $err" "^74 .*none/m.onnx" "a folder that is not there"
cp m.onnx before.onnx
(ulimit -f 8; limit 60 "$train" export --model mnist-convnet --weights w.safetensors --output m.onnx >/dev/null 2>err)
is $? 74 "a file that may not be so large"
same m.onnx before.onnx "the earlier file stays"
export_model --output m.pt
like "$status $err" "^64 .*m.pt: give a name that ends in .onnx" "a format that is not there"
export_model --output m.onnx --format keras
like "$status $err" "^64 .*--format keras: the name of m.onnx is one for onnx" "a format that contradicts the name"
export_model --output m.onnx --format tflite
like "$status $err" "^64 .*tflite" "an unknown format"
export_model
like "$status $err" "^64 .*--output is missing" "no file"
export_model --output w.safetensors
like "$status $err" "^64 .*would replace what --weights reads" "the weights are not replaced"
capture limit 60 "$train" export --model mnist-cnn --weights w.safetensors --output m.onnx
like "$status $err" "^65 .*w.safetensors" "weights of another model"
done_testing
