#!/bin/bash
# models.t: models and weights as people have them, by the command: one output, rows of pixels, a run that goes on,
# what is said of labels, files that are something else. Losses are those of Keras 3.15 for the same model and pictures.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-models.XXXXXX)
at_exit "rm -rf '$work'"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0
hpc_train=$top_builddir/hpc-train

# pictures DIR LABEL…: six pictures of 2x2, as training and as test pictures.
pictures() {
    local dir=$1 name labels
    shift
    mkdir -p "$dir"
    labels=$(printf '\\%03o' "$@")
    for name in train t10k; do
        printf '\0\0\010\003\0\0\0\006\0\0\0\002\0\0\0\002%b' "$(printf '\\0%03o' 10 200 30 40 220 10 90 5 0 0 255 255 \
            255 255 0 0 100 100 100 100 50 60 70 80)" >"$dir/$name-images-idx3-ubyte"
        printf '\0\0\010\001\0\0\0\006%b' "${labels//\\/\\0}" >"$dir/$name-labels-idx1-ubyte"
    done
}
pictures "$work/two" 0 1 0 1 1 0
pictures "$work/from-one" 1 2 1 2 3 3
# model NAME UNITS ACTIVATION: Input((4,)), one Dense whose kernel is 0.5 and bias -0.5.
model() {
    local constant='{"module": "keras.initializers", "class_name": "Constant", "config": {"value": '
    cat >"$work/$1.json" <<END
{"module": "keras", "class_name": "Sequential", "config": {"name": "$1", "layers": [
  {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "name": "in"}},
  {"module": "keras.layers", "class_name": "Dense", "config": {"name": "dense", "units": $2, "activation": "$3",
    "kernel_initializer": ${constant}0.5}}, "bias_initializer": ${constant}-0.5}}}}]}}
END
}
model sigmoid 1 sigmoid
model logit 1 linear
model softmax 1 softmax
model ten 10 softmax
# fit MODEL OPTION…: on all pictures at once, so that their order does not matter.
fit() {
    local name=$1
    shift
    "$hpc_train" fit --model "$work/$name.json" --batch-size 6 --log-dir "$work/log" --verbose 0 "$@"
}
# column NAME: what history.csv has there, epoch by epoch.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { printf "%s%.6g", s, $c; s = " " }' "$work/log/history.csv"; }

# ---- one output, labels 0 and 1 ----
for name in sigmoid logit; do
    fit $name --data "$work/two" --validation-data "$work/two" --epochs 4 --learning-rate 0.5
    is "$(column loss)" "0.675351 0.654616 0.635626 0.618158" "$name: the losses of Keras' BinaryCrossentropy"
    is "$(column accuracy)" "0.5 0.666667 0.833333 0.833333" "accuracies with a threshold of 0.5"
    is "$(column val_accuracy)" "0.666667 0.833333 0.833333 0.833333" "also of the test pictures"
done
capture fit softmax --data "$work/two"
is "$status" 65 "a softmax over one output is an error"
like "$err" "model softmax ends in one output of softmax, which is always 1" "the error says why"
capture fit sigmoid --data "$work/from-one"
is "$status" 65 "a third class is refused"
like "$err" "from-one/train-labels-idx1-ubyte: label 2 of sample 1 is out of range: the model has 2 classes" "the error names the file"
capture fit sigmoid --data "$work/two" --top-k 2
is "$status" 64 "the two best of one output are refused"
fit sigmoid --data synthetic:24 --epochs 30 --learning-rate 0.5
ok "$(column accuracy | awk '{ exit !($NF > 0.8) }'; echo $?)" "synthetic pictures are of two classes then"
capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$hpc_train" fit --model "$work/sigmoid.json" \
    --data "$work/two" --global-batch-size 6 --epochs 4 --learning-rate 0.5 --log-dir "$work/log" --verbose 0
is "$status:$(column loss)" "0:0.675351 0.654616 0.635626 0.618158" "two ranks have the same losses as one"

# ---- labels ----
capture fit ten --data "$work/from-one" --verbose 2
is "$status" 0 "labels from 1 train"
like "$err" "training: no picture has the label 0, the first label is 1" "a warning: no label is 0"
like "$err" "training: there are 4 classes, the model has 10" "a warning: fewer classes than outputs"
capture fit sigmoid --data "$work/two" --verbose 2
is "$(grep -c "label\|classes, the model" <<<"$err")" 0 "no warning if all labels occur"

# ---- RMSprop ----
fit sigmoid --data "$work/two" --epochs 5 --optimizer rmsprop --learning-rate 0.05 --rho 0.8 --momentum 0.5 --centered \
    --epsilon 1e-3
is "$(column loss)" "0.675351 0.638792 0.596647 0.558357 0.524837" "RMSprop has Keras' losses"
capture fit sigmoid --data "$work/two" --rho 0.8
is "$status" 64 "rho of sgd is refused"
like "$err" "rho and centered belong to rmsprop, not to sgd" "the error names both options"
capture fit sigmoid --data "$work/two" --epsilon 0.1
is "$status" 64 "--epsilon with sgd is an error"

# ---- a run that goes on ----
part() { # OPTION…: in steps of four and two
    "$hpc_train" fit --model "$work/sigmoid.json" --data "$work/two" --global-batch-size 4 --seed 5 --learning-rate 0.5 \
        --log-dir "$work/log" --verbose 0 "$@"
}
for schedule in constant step:1,3 exponential:0.5; do
    part --schedule $schedule --epochs 4
    whole=$(column loss) rates=$(column learning_rate)
    part --schedule $schedule --epochs 2 --save-weights "$work/half.safetensors"
    first="$(column loss) "
    part --schedule $schedule --epochs 4 --initial-epoch 2 --weights "$work/half.safetensors"
    is "$first$(column loss)" "$whole" "$schedule: two epochs plus two equal four"
    is "$(column learning_rate)" "$(cut -d ' ' -f 3- <<<"$rates")" "with the same learning rates"
    is "$(column epoch)" "2 3" "numbered as such"
done
part --schedule cosine --epochs 4
rates=$(column learning_rate)
part --schedule cosine --epochs 4 --initial-epoch 3
is "$(column learning_rate)" "$(cut -d ' ' -f 4 <<<"$rates")" "a cosine ends where it would"
capture part --epochs 3 --initial-epoch 2 --verbose 2
is "$(grep -c '^Epoch 3/3$' <<<"$out")" 1 "the epoch has its number"
like "$(tail -n 1 "$work/log/metrics.jsonl")" '"epoch": 3, "step": 2' "also in the log of steps"
capture part --epochs 2 --initial-epoch 2
is "$status" 64 "nothing left to train is refused"
like "$err" "--initial-epoch 2: --epochs counts all epochs" "the error explains --epochs"

# ---- files that are something else ----
other() { # MESSAGE OPTION…
    local want=$1
    shift
    capture "$hpc_train" evaluate --data "$work/two" "$@"
    is "$status" 65 "${*: -1} is refused"
    like "$err" "$want" "the error says what the file is"
}
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n' >"$work/lfs.safetensors"
printf '<!DOCTYPE html><html>404</html>' >"$work/page.json"
printf 'PK\003\004\024\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\015\0\0\0metadata.json{}' >"$work/m.keras"
other "lfs.safetensors is a git-lfs pointer .*git lfs pull" --model "$work/sigmoid.json" --weights "$work/lfs.safetensors"
other "m.keras is a .keras archive: unzip it" --model "$work/sigmoid.json" --weights "$work/m.keras"
other "m.keras is a .keras archive: unzip it" --weights "$work/lfs.safetensors" --model "$work/m.keras"
other "page.json is a page of HTML" --weights "$work/lfs.safetensors" --model "$work/page.json"
for name in w.keras w.hdf5 w.npz w.h5; do
    capture fit sigmoid --data "$work/two" --save-weights "$work/$name"
    is "$status" 64 "--save-weights $name is refused"
    ok "$([ ! -e "$work/$name" ]; echo $?)" "nothing is written"
done

# ---- weights that are not finite ----
fit sigmoid --data "$work/two" --save-weights "$work/w.safetensors"
bytes=$(stat -c %s "$work/w.safetensors")
{ head -c $((bytes - 4)) "$work/w.safetensors"; printf '\0\0\300\177'; } >"$work/nan.safetensors"
other '1 of the 1 numbers of "dense/bias" are NaN or infinite.*--allow-nan' --model "$work/sigmoid.json" \
    --weights "$work/nan.safetensors"
capture fit sigmoid --data "$work/two" --weights "$work/nan.safetensors"
is "$status" 65 "fit rejects them, too"
capture fit sigmoid --data "$work/two" --weights "$work/nan.safetensors" --allow-nan --save-weights "$work/again.safetensors"
unlike "$err" "NaN or infinite" "unless --allow-nan is given"

capture "$hpc_train" evaluate --model "$work/sigmoid.json" --weights "$work/nan.safetensors" --allow-nan --data "$work/two"
like "$status $err" '^65 .*in the weights, .*"dense/bias"' "evaluate names them, whatever the loss"

# ---- probabilities before the end, and pixels that are scaled twice ----
layers() { # NAME LAYER...: a Sequential model of 28x28x1 with these between Flatten and the end
    local IFS=,
    echo '{"class_name":"Sequential","config":{"layers":[{"class_name":"InputLayer","config":{"batch_shape":[null,28,28,1]}},'"${*:2}"']}}' >"$work/$1.json"
}
flatten='{"class_name":"Flatten","config":{}}' softmax='{"class_name":"Dense","config":{"units":10,"activation":"softmax"}}'
layers hidden "$flatten" "$softmax" '{"class_name":"Dropout","config":{"rate":0.1}}'
capture "$hpc_train" fit --model "$work/hidden.json" --data synthetic:64
like "$status $err" '^65 .*softmax or sigmoid before its last layer, "dropout".*neither probabilities nor logits' "softmax before Dropout is no loss of logits"
layers rescaled '{"class_name":"Rescaling","config":{"scale":0.00392156862745098}}' "$flatten" "$softmax"
capture "$hpc_train" fit --model "$work/rescaled.json" --data synthetic:64
like "$status $err" "^0 .*the model rescales pixels itself.*--scale none" "pixels that are scaled twice: a warning"
capture "$hpc_train" fit --model "$work/rescaled.json" --data synthetic:64 --scale none
unlike "$err" "rescales" "not with --scale none"

# ---- built-in models have the scaling that they are made for ----
# network NAME OPTION…: its loss with initial weights.
network() {
    capture "$hpc_train" fit --model "$1" --classes 2 --resize 32x32 --data synthetic:6 --batch-size 6 --epochs 1 --device cpu \
        --learning-rate 1e-30 --log-dir "$work/log" --verbose 0 "${@:2}"
    column loss
}
for name in mobilenetv2=symmetric mobilenetv3small=none efficientnetb0=none densenet121=unit mobilenetv2-torchvision=none; do
    loss=$(network "${name%=*}") other=unit
    [ "${name#*=}" != unit ] || other=symmetric
    is "$loss" "$(network "${name%=*}" --scale "${name#*=}")" "${name%=*}: --scale ${name#*=} by default"
    ok "$([ "$loss" != "$(network "${name%=*}" --scale $other)" ]; echo $?)" "--scale $other makes it another loss"
done
network mobilenetv3small >/dev/null
unlike "$err" "rescales" "no warning of pixels that are scaled twice"
network efficientnetb0 --scale unit >"$work/loss"
like "$err" "the model rescales pixels itself.*--scale none" "a warning with another scale"

# ---- an input whose size is open, and classes that there are not ----
layers open "$flatten" "$softmax"
sed -i 's/\[null,28,28,1\]/[null,null,null,1]/' "$work/open.json"
capture "$hpc_train" summary --model "$work/open.json"
like "$status $err" '^65 .*height or width of its input is open.*--resize WIDTHxHEIGHT' "an input of open size says how to set it"
capture "$hpc_train" summary --model "$work/open.json" --resize 6x5
like "$status $out" '^0 .*Total params: 310' "--resize sets it"
capture "$hpc_train" fit --model "$work/open.json" --resize 6x5 --data synthetic:8 --batch-size 4
is "$status" 0 "and a model of it is trained"
layers refused '{"class_name":"LSTM","config":{"name":"a"}}' "$flatten" '{"class_name":"Lambda","config":{"name":"b"}}' \
    '{"class_name":"LSTM","config":{"name":"c"}}'
capture "$hpc_train" summary --model "$work/refused.json"
like "$status $err" '^65 .*3 of its layers are not supported: "a", "c" \(LSTM\), "b" \(Lambda\); there are: InputLayer, ' \
    "all layers that are not supported, in one error"

# ---- names of layers that contradict the order, beside one that is new ----
named() { echo '{"class_name":"Dense","config":{"name":"'"$1"'","units":16}}'; }
top='{"class_name":"Dense","config":{"name":"head","units":10}}'
layers order "$flatten" "$(named a)" "$(named b)" "$(named c)" "$top"
layers swapped "$flatten" "$(named a)" "$(named c)" "$(named b)" "${top/head/other}"
capture "$hpc_train" fit --model "$work/swapped.json" --data synthetic:64 --save-weights "$work/w.weights.h5"
capture "$hpc_train" fit --model "$work/order.json" --data synthetic:64 --weights "$work/w.weights.h5"
like "$status $err" '^65 .*names in another order: "c" comes where the model has "b"' "two layers swapped, and one with another name: an error"

# ---- what is built ----
capture "$hpc_train" summary --model resnet50v2 --batch-size 4 --plan
is "$status" 0 "summary --plan"
block=$(sed -n "s/^Plan of 'resnet50v2' on cpu, batches of 4: \([0-9]*\) bytes of activations.*/\1/p" <<<"$out")
is "$(sed -n 's/^ activations and their gradients *\([0-9.]*\) MiB$/\1/p' <<<"$out")" "$(awk "BEGIN { printf \"%.1f\", ${block:-0} / 1048576 }")" \
    "has the activations' bytes of the table above it"
is "$(awk '/^node/ || $1 !~ /^[0-9]+$/ { next } $5 >= '"${block:-0}"' || $1 != count++ { bad++ } END { print count + 0, bad + 0 }' <(sed -n '/^Plan of/,$p' <<<"$out"))" \
    "125 0" "and every node, whose result lies in that block"
capture env HPC_TRAIN_DEBUG=comm,plan,ops,more "$hpc_train" fit --model mnist-cnn --data synthetic:64 --epochs 1
is "$status" 0 "HPC_TRAIN_DEBUG"
like "$err" "HPC_TRAIN_DEBUG: 'more' is none of comm, plan and ops" "an unknown word is an error, with the known ones"
like "$err" "debug comm: rank 0 of 1 on [^ ]+: connected over self" "comm"
like "$err" "Plan of 'mnist-cnn' on cpu, batches of 64" "plan"
like "$err" "debug ops: node 1, layer dense: dense"$'\n'"hpc-train: debug ops: +oneDNN's [a-z0-9_:]+, [0-9]+ bytes of scratch" "ops"
capture "$hpc_train" fit --model mnist-cnn --data synthetic:64 --epochs 1
unlike "$err" "debug|Plan of" "without HPC_TRAIN_DEBUG nothing is printed"

done_testing
