#!/bin/bash
# --device: where the GPU module is not, where there is no driver, and training by a backend whose memory the process cannot
# reach: the module on an emulated machine (tests/emulated/machine.h), or another in its place (module.c).
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
top_builddir=${top_builddir:-$top_srcdir/build}
train="$top_builddir/hpc-train"
own=$(mktemp -d)
at_exit "rm -rf '$own'"
steps=(--model mnist-convnet --data synthetic:12 --batch-size 2 --verbose 2)
lines() { wc -l <<<"$1"; }

capture env HPC_TRAIN_MODULE_DIR="$own" "$train" fit "${steps[@]}" --device cuda
is "$status" 78 "--device cuda without the module ends as a wrong installation does"
like "$err" "hpctrain-cuda.so is not installed.*--device cpu" "and says what is missing"
is "$(lines "$err")" 1 "in one line"
capture "$train" fit "${steps[@]}" --device abacus
is "$status" 64 "an unknown device is refused"

if [ -e "$top_builddir/.libs/hpctrain-cuda.so" ] && [ ! -e /dev/nvidiactl ]; then
    capture env HPC_TRAIN_MODULE_DIR="$top_builddir/.libs" "$train" fit "${steps[@]}" --device cuda
    is "$status" 78 "--device cuda without a driver"
    like "$err" "driver.*--device cpu" "says so"
    is "$(lines "$err")" 1 "in one line"
    capture env HPC_TRAIN_MODULE_DIR="$top_builddir/.libs" "$train" fit "${steps[@]}" --device auto
    is "$status" 0 "--device auto takes the CPU then"
    is "$err" "" "and says nothing of it"
else
    skip "no driver" "the GPU module is not built, or a GPU is here"
fi

# The module itself where CUDA is to build it with.
gpu=apart
[ ! -e "$top_builddir/tests/emulated/.libs/hpctrain-cuda.so" ] || gpu=emulated
gpu=${HPC_TRAIN_TEST_GPU-$gpu}
export HPC_TRAIN_MODULE_DIR=$top_builddir/tests/$gpu/.libs XDG_CACHE_HOME=$own/cache
fit() {
    capture "$train" fit "${steps[@]}" --epochs 2 --validation-data synthetic:4 --log-dir "$own/$1" \
        --summary-json "$own/$1.json" --save-weights "$own/$1.safetensors" --device "$@"
}
fit cpu
is "$status" 0 "training on the CPU"
export HPC_TRAIN_TEST_RECORDINGS=$own/recordings
fit cuda
is "$status" 0 "and on a device whose memory is its own"
like "$(<"$own/cuda.json")" '"device": "cuda"' "the summary has it"
# the reference sums in another order than oneDNN does
same() { # NAME NAME
    python3 - "$own" "$@" <<'END'
import csv, sys
cpu, cuda = (list(csv.reader(open(f"{sys.argv[1]}/{d}/history.csv")))[1:] for d in sys.argv[2:])
assert len(cpu) == len(cuda) == 2
for a, b in zip(cpu, cuda):
    for x, y in zip(a, b):
        assert abs(float(x) - float(y)) < 2e-4, (a, b)
END
}
same cpu cuda
ok $? "the same losses and accuracies"

capture "$train" evaluate --model mnist-convnet --data synthetic:4 --weights "$own/cuda.safetensors" --device cuda
is "$status" 0 "evaluation"
# A step is called once, recorded when it comes again, and replayed, in 10 of 12 steps: the first one behind an evaluation does
# not copy the parameters again, so it is another.
is "$(sed 's/.*, //' "$own/recordings" | sort | uniq -c | xargs)" "1 10 replays" "a step is one recording"
changing=(--optimizer adam --schedule cosine --warmup-epochs 1 --clip-norm 1)
steps=(--model "$own/drops.json" --data synthetic:12 --batch-size 2 --verbose 2 "${changing[@]}")
cat >"$own/drops.json" <<'END'
{"class_name": "Sequential", "config": {"name": "drops", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28], "name": "input"}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Dense", "config": {"name": "first", "units": 16, "activation": "relu"}},
    {"class_name": "Dropout", "config": {"name": "drop", "rate": 0.5}},
    {"class_name": "Dense", "config": {"name": "second", "units": 10}}]}}
END
fit cpu --device cpu
rm -r "$own/cuda"
fit cuda
is "$status" 0 "a model that draws, a rate that changes" || diag "$err"
same cpu cuda
ok $? "the same losses and accuracies"
# Plain SGD is in the product of a Dense layer's gradient, by the rate of each step.
steps=(--model "$own/drops.json" --data synthetic:12 --batch-size 2 --verbose 2 --learning-rate 0.1 --schedule cosine --warmup-epochs 1)
fit cpu --device cpu
for record in 1 0; do
    rm -r "$own/cuda"
    export HPC_TRAIN_RECORD=$record
    fit cuda
    is "$status" 0 "SGD of a rate that changes, HPC_TRAIN_RECORD=$record" || diag "$err"
    same cpu cuda
    ok $? "the same losses and accuracies"
done
unset HPC_TRAIN_RECORD
steps=(--model mnist-convnet --data synthetic:12 --batch-size 2 --verbose 2)
unset HPC_TRAIN_TEST_RECORDINGS
capture "$train" fit "${steps[@]}" --device cuda --optimizer adam --gradient-accumulation 2 --top-k 3 --global-clip-norm 1
is "$status" 0 "an optimizer with slots, accumulation, top-k"
for test in test_nn_ops test_nn_train; do
    [ -e "$top_builddir/tests/unit/$test" ] || continue
    capture env HPC_TRAIN_CUDNN_COMPILE=1 HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_BACKEND=cuda "$top_builddir/tests/unit/$test"
    is "$status" 0 "$test's cases there"
    [ $test != test_nn_ops ] || like "$out $err" "([1-9][0-9]*) of [0-9]+ convolutions left moments" "convolutions leave moments there"
    [ $test != test_nn_ops ] || [ $gpu != emulated ] || [ -n "${HPC_TRAIN_TEST_ENGINES-}" ] || # as engines are drawn, maybe none
        like "$out $err" "([1-9][0-9]*) of [0-9]+ convolutions added to gradients" "and add to others' gradients"
    [ $test != test_nn_ops ] || [ -n "${HPC_TRAIN_TEST_ENGINES-}" ] ||
        like "$out $err" "([1-9][0-9]*) of [0-9]+ convolutions took a normalization" "and take normalizations over"
done
# Where libraries take long, own kernels are taken: then a step of this model is 8 calls, three of them products of cuBLASLt.
if [ "$gpu" = emulated ]; then
    capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/slow" HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_BACKEND=cuda \
        "$top_builddir/tests/unit/test_nn_ops"
    is "$status" 0 "test_nn_ops with own kernels for small windows" || diag "$err"
    capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/slow" HPC_TRAIN_TEST_RECORDINGS="$own/own-kernels" \
        "$train" bench --model mnist-cnn --batch-size 8 --steps 2 --device cuda --precision bf16
    is "$status" 0 "mnist-cnn with them" || diag "$err"
    is "$(cut -d, -f1 "$own/own-kernels")" "8 calls" "parameters are copied at once, the first layer is updated with its gradients, the last one made with the loss"
    # Copies and what lingers of the large Dense go on beside the rest.
    capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/in-branches" HPC_TRAIN_TEST_RECORDINGS="$own/branches" HPC_TRAIN_TEST_BRANCHES=1 \
        "$train" bench --model mnist-cnn --batch-size 8 --steps 2 --device cuda --precision bf16
    is "$(cut -d, -f1,2 "$own/branches")" "8 calls, 6 after each other" "copies and the large product go on beside others"
    # What a replayed step asks of the device besides: a mark, behind which its loss is on the host.
    enqueued() {
        rm -f "$own/enqueued"
        capture env HPC_TRAIN_TEST_ACCOUNT="$own/enqueued" "$train" bench --model mnist-convnet --batch-size 2 --steps "$1" --device cuda
        sed 's/.*, \([0-9]*\) enqueued/\1/' "$own/enqueued"
    }
    enqueued 20 >"$own/warm"
    is $(($(enqueued 40) - $(enqueued 20))) 40 "a step is a graph and a mark"
fi
for device in cpu cuda; do
    capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device $device --summary-json "$own/bench.$device.json"
    is "$status" 0 "bench, $device"
done
loss_of() { sed -n 's/^ *"loss": \([0-9.]*\).*/\1/p' "$own/bench.$1.json"; }
ok "$(awk -v a="$(loss_of cpu)" -v b="$(loss_of cuda)" 'BEGIN { d = a - b; print !(a > 0 && d < 1e-4 && d > -1e-4) }')" \
    "with the same losses, from pictures that were sent once ($(loss_of cpu), $(loss_of cuda))"
capture "$train" info
like "$out" "NCCL +there is no NCCL behind the wall" "info says whether there is NCCL"
like "$out" "GPU 0 +(the reference, behind a wall|emulated GPU, 8.0 GiB, compute capability 9.0)" "lists GPUs"
capture env HPC_TRAIN_TEST_DEVICES=2 "$train" info
like "$out" "to the others: 1 (through the wall|by NVLink)" "and their links"
like "$(<"$own/bench.cuda.json")" '"device_used_mb": [0-9.]+' "bench says what was taken of the GPU"
ok "$(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(int(not 0.9 < j["predicted_mb"] / j["device_used_mb"] < 1.1))' \
    "$own/bench.cuda.json")" "within 10 % of what was planned"
ok "$(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(int(not 0.999 < j["train_seconds"] * j["images_per_second"] / 12 < 1.001))' \
    "$own/bench.cuda.json")" "and its rate is of all steps, to the end of the last"

capture env HPC_TRAIN_TEST_USED=8157 "$train" bench --model mnist-convnet --batch-size 100000 --steps 1 --device cuda
is "$status" 78 "a batch that the device has no room for"
like "$err" "batch size 100000 takes [0-9.]+ GiB \(most activations in backward of layer [a-z0-9_]+: [0-9.]+ GiB\), more than the [0-9.]+ [GM]iB that a rank may take \(GPU\): at most [0-9]+ fits" \
    "says how much, in which layer, and what would fit"
if [ $gpu = emulated ]; then
    capture env HPC_TRAIN_TEST_USED=8170 "$train" bench --model mnist-convnet --batch-size 64 --steps 1 --device cuda
    is "$status" 78 "a device that others have filled"
    like "$err" "the GPU is out of memory before anything is computed: of its 8192 MiB 2[0-9] are free; others use it.*cudaMalloc: out of memory" "says so"
    is "$(lines "$err")" 1 "in one line"
    capture env HPC_TRAIN_TEST_MAJOR=6 "$train" fit "${steps[@]}" --device cuda
    is "$status" 78 "one that is too old"
    like "$err" "compute capability 6.0, it must be 7.0 or more: take --device cpu" "is refused"
    capture env HPC_TRAIN_TEST_MAJOR=7 "$train" fit "${steps[@]}" --device cuda --precision bf16
    is "$status" 78 "bf16 on one that does not have it"
    like "$err" "precision bf16 needs a GPU of compute capability 8.0 or more" "is refused"
    for call in cudaGraphLaunch:3 cudnnBackendExecute:2 cublasLtMatmul:2 launch:5; do
        capture env HPC_TRAIN_TEST_REFUSES=$call "$train" fit "${steps[@]}" --device cuda
        is "$status" 70 "$call fails"
        like "$err" "(cudaGraphLaunch|of layer [a-z0-9_]+: .*): (an )?emulated (CUDA )?error" "says what failed, and where"
    done
    # A kernel that does what it must not is found later, in another layer or in a library's call: that is said, with what to do,
    # and then its own layer is named.
    for number in 5 9; do
        capture env HPC_TRAIN_TEST_REFUSES=kernel:$number "$train" fit "${steps[@]}" --device cuda
        is "$status" 70 "kernel $number does what it must not"
        like "$err" "emulated CUDA error 700, by a kernel of this call or an earlier one \(CUDA_LAUNCH_BLOCKING=1 and HPC_TRAIN_RECORD=0 together name its layer\)" \
            "found later, and said so"
        capture env HPC_TRAIN_TEST_REFUSES=kernel:$number CUDA_LAUNCH_BLOCKING=1 HPC_TRAIN_RECORD=0 "$train" fit "${steps[@]}" --device cuda
        like "$err" "of layer [a-z0-9_]+: .*: emulated CUDA error 700\$" "found where it is launched"
    done
    for call in cudaStreamBeginCapture cudaStreamEndCapture cudaGraphInstantiate; do
        capture env HPC_TRAIN_TEST_REFUSES=$call:1+ "$train" fit "${steps[@]}" --device cuda
        is "$status" 0 "$call fails: a step is made of calls"
    done
fi
taken=$([ $gpu = emulated ] && echo 8152 || echo 8190) # cuBLAS has its own
capture env HPC_TRAIN_TEST_TAKEN="$taken" "$train" bench --model mnist-convnet --batch-size 64 --steps 1 --device cuda
is "$status" 78 "room that somebody else has taken meanwhile"
like "$err" "the GPU is out of memory: [0-9]+ MiB are needed for activations, most of them in backward, layer [a-z0-9_]+, and of its 8192 MiB [0-9]+ are free: take a smaller batch" \
    "says what is missing"

# ---- pictures that lie on the device, sums that are looked at later ----

number() { sed -n "s/^ *\"$2\": \([0-9.e-]*\).*/\1/p" "$own/$1.json"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; print !(a > 0 && d < 2e-4 && d > -2e-4) }'; }
# Of 40 pictures of 20x24, resized, mirrored and moved: 10 steps of 4 in two epochs.
python3 - "$own" <<'END'
import gzip, os, random, struct, sys
random.seed(4)
folder = sys.argv[1] + "/small"
os.mkdir(folder)
for part, count in (("train", 40), ("t10k", 12)):
    pixels = bytes(random.randrange(256) for _ in range(count * 20 * 24))
    labels = bytes(random.randrange(10) for _ in range(count))
    open(f"{folder}/{part}-images-idx3-ubyte", "wb").write(struct.pack(">4I", 0x803, count, 20, 24) + pixels)
    open(f"{folder}/{part}-labels-idx1-ubyte", "wb").write(struct.pack(">2I", 0x801, count) + labels)
END
cat >"$own/tiny.json" <<'END'
{"class_name": "Sequential", "config": {"name": "tiny", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28, 1], "name": "input"}},
    {"class_name": "Conv2D", "config": {"name": "first", "filters": 4, "kernel_size": [3, 3], "activation": "relu"}},
    {"class_name": "MaxPooling2D", "config": {"name": "pool"}},
    {"class_name": "Conv2D", "config": {"name": "second", "filters": 8, "kernel_size": [3, 3], "activation": "relu"}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Dense", "config": {"name": "head", "units": 10}}]}}
END
# Gradients are sent before and after the sums of both normalizations.
sed 's/"tiny"/"norm"/; /"MaxPooling2D"/a {"class_name": "BatchNormalization", "config": {"name": "norm"}},
    /"Flatten"/a {"class_name": "Dense", "config": {"name": "wide", "units": 16}}, {"class_name": "BatchNormalization", "config": {"name": "other"}},' \
    "$own/tiny.json" >"$own/norm.json"
sed 's/"name": "norm"/&, "synchronized": true/' "$own/norm.json" >"$own/synced.json"
cat >"$own/steep.json" <<'END'
{"class_name": "Sequential", "config": {"name": "steep", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28, 1], "name": "input"}},
    {"class_name": "Conv2D", "config": {"name": "first", "filters": 8, "kernel_size": [3, 3], "strides": [2, 2], "activation": "relu"}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Rescaling", "config": {"name": "down", "scale": 0.001}},
    {"class_name": "Dense", "config": {"name": "middle", "units": 64, "activation": "relu", "use_bias": false}},
    {"class_name": "Rescaling", "config": {"name": "up", "scale": 1000}},
    {"class_name": "Dense", "config": {"name": "last", "units": 10}}]}}
END
sed 's/"steep"/"flat"/; /"Conv2D"/d; s/"units": 64/"units": 6/' "$own/steep.json" >"$own/flat.json"
# fit_small NAME OPTION…: on one rank, or by `ranks`, by multi-worker-mirrored where nothing else is said
ranks=()
fit_small() {
    local strategy=()
    [[ ${#ranks[@]} = 0 || " $* " == *" --strategy "* || " $* " == *" --replicas "* ]] || strategy=(--strategy multi-worker-mirrored)
    rm -f "$own/account"
    capture "${ranks[@]}" "$train" fit --model "$own/tiny.json" --resize 28x28 --data "$own/small" --validation-data "$own/small" \
        --augment flip,crop:3 --global-batch-size 4 --epochs 2 --seed 3 --verbose 0 --summary-json "$own/$1.json" "${strategy[@]}" "${@:2}"
    is "$status" 0 "$1" || diag "$err"
}
fit_small on-cpu --device cpu
export HPC_TRAIN_TEST_ACCOUNT=$own/account
same_as_cpu() { # NAME
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number on-cpu $value)" "$(number "$1" $value)")" "$1: $value is the CPU's ($(number on-cpu $value), $(number "$1" $value))"
    done
}
[ $gpu = apart ] || fit_small warm --device cuda # engines are chosen by waiting for them
fit_small on-device --device cuda
same_as_cpu on-device
near_in_fp16() { # NAME NAME [LARGEST-DIFFERENCE]
    ok "$(awk -v a="$(number "$1" loss)" -v b="$(number "$2" loss)" -v most="${3-0.02}" 'BEGIN { d = a - b; print !(a > 0 && d < most && d > -most && d != 0) }')" \
        "$2 in fp16: near $1 ($(number "$1" loss), $(number "$2" loss))"
}
read -r sent waits < <(sed 's/ bytes sent, / /; s/ waits.*//' "$own/account")
# 20 steps and 6 batches of evaluation; 12 bytes a picture
is "$sent" $((12 * (2 * 40 + 2 * 12))) "a step sends numbers of pictures, not pictures"
ok "$((waits >= 26))" "and does not wait for the device ($waits waits, building and evaluating)"
if [ $gpu = apart ]; then
    export HPC_TRAIN_TEST_NO_GATHER=1
    fit_small sent-pictures --device cuda
    same_as_cpu sent-pictures
    read -r sent waits < <(sed 's/ bytes sent, / /; s/ waits.*//' "$own/account")
    is "$sent" $(((4 * 28 * 28 + 4) * (2 * 40 + 2 * 12))) "where it cannot make them, a step sends pictures"
    ok "$((waits >= 20))" "and does not wait for the device ($waits waits)"
    unset HPC_TRAIN_TEST_NO_GATHER
fi
# A block of ResNetV2's and one of ResNet's: what lingers of a convolution reads a gradient that the normalization before it goes
# on with, and an Add leaves sums to a normalization.
python3 - "$own/blocks.json" <<'END'
import json, sys
layers = []
def layer(kind, name, before, **config):
    seen = [{"class_name": "__keras_tensor__", "config": {"shape": [None, 14, 14, 8], "dtype": "float32", "keras_history": [b, 0, 0]}} for b in before]
    layers.append({"class_name": kind, "config": {"name": name, **config}, "name": name,
                   "inbound_nodes": [{"args": [seen] if len(seen) > 1 else seen, "kwargs": {}}] if seen else []})
layer("InputLayer", "in", [], batch_shape=[None, 28, 28, 1])
layer("Conv2D", "stem", ["in"], filters=8, kernel_size=[3, 3], strides=[2, 2], padding="same")
layer("BatchNormalization", "before", ["stem"])
layer("Activation", "open", ["before"], activation="relu")
layer("Conv2D", "second", ["open"], filters=8, kernel_size=[3, 3], padding="same", use_bias=False)
layer("Add", "sum", ["stem", "second"])
layer("Conv2D", "third", ["sum"], filters=8, kernel_size=[1, 1], padding="same")
layer("Conv2D", "fourth", ["third"], filters=8, kernel_size=[3, 3], padding="same")
layer("Conv2D", "fifth", ["fourth"], filters=8, kernel_size=[1, 1], padding="same")
layer("BatchNormalization", "behind", ["fifth"])
layer("Add", "total", ["sum", "behind"])
layer("Activation", "last", ["total"], activation="relu")
layer("GlobalAveragePooling2D", "pool", ["last"])
layer("Dense", "classes", ["pool"], units=10)
json.dump({"class_name": "Functional", "config": {"name": "blocks", "layers": layers, "input_layers": ["in", 0, 0],
                                                  "output_layers": ["classes", 0, 0]}}, open(sys.argv[1], "w"))
END
for device in cpu cuda cuda-in-line; do
    way=1
    [ $device != cuda-in-line ] || way=0
    HPC_TRAIN_TEST_BRANCHES=$way XDG_CACHE_HOME=$own/$device fit_small "blocks-$device" --device ${device%%-*} --model "$own/blocks.json" \
        --learning-rate 0.5 --epochs 4
    [ $device = cpu ] || ok "$(near "$(number blocks-cpu loss)" "$(number blocks-$device loss)")" \
        "blocks on $device: loss is the CPU's ($(number blocks-cpu loss), $(number blocks-$device loss))"
done
# In 16 bits gradients of kernels lie in the scratch until they are made fp32.
HPC_TRAIN_TEST_BRANCHES=1 XDG_CACHE_HOME=$own/cuda fit_small blocks-in-bf16 --device cuda --precision bf16 --model "$own/blocks.json" \
    --learning-rate 0.05
HPC_TRAIN_TEST_BRANCHES=0 XDG_CACHE_HOME=$own/cuda-in-line fit_small blocks-in-bf16-in-line --device cuda --precision bf16 \
    --model "$own/blocks.json" --learning-rate 0.05
# Engines, which round differently, are drawn for each.
ok "$(awk -v a="$(number blocks-in-bf16 loss)" -v b="$(number blocks-in-bf16-in-line loss)" 'BEGIN { d = a - b; print !(a > 0 && d < 1e-3 && d > -1e-3) }')" \
    "in bf16: the same beside each other and in line ($(number blocks-in-bf16 loss), $(number blocks-in-bf16-in-line loss))"
for device in cpu cuda; do
    fit_small "residual-$device" --device $device --model "$top_srcdir/tests/strategy/residual.json" --steps-per-epoch 5
done
for value in loss val_loss; do
    ok "$(near "$(number residual-cpu $value)" "$(number residual-cuda $value)")" \
        "normalized pictures that are added: $value is the CPU's ($(number residual-cpu $value), $(number residual-cuda $value))"
done
fit_small logged --device cuda --log-dir "$own/log"
same_as_cpu logged
is "$(wc -l <"$own/log/metrics.jsonl")" 20 "a log has each step's"
if command -v mpirun >/dev/null; then
    ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3)
    fit_small three-ranks --device cuda
    same_as_cpu three-ranks
    like "$err" "sums go through the hosts' memory and MPI, not by NCCL: rank 0: there is no NCCL behind the wall" "without NCCL by MPI"
    fit_small three-ranks-logged --device cuda --log-dir "$own/log3"
    same_as_cpu three-ranks-logged
    ok "$(python3 - "$own" <<'END'
import json, sys
one, three = ([json.loads(line) for line in open(f"{sys.argv[1]}/{d}/metrics.jsonl")] for d in ("log", "log3"))
print(int(not (len(one) == len(three) == 20 and all(abs(a["loss"] - b["loss"]) < 2e-4 for a, b in zip(one, three)))))
END
)" "step by step"
    fit_small local-on-cpu --device cpu --strategy local-sgd --allow-lossy --local-steps 3
    fit_small local-on-device --device cuda --strategy local-sgd --allow-lossy --local-steps 3
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number local-on-cpu $value)" "$(number local-on-device $value)")" "local-sgd: $value is the CPU's"
    done
    for form in rows columns back; do
        for device in cpu cuda; do
            fit_small "$device-$form" --device $device --model mnist-cnn --strategy hybrid --hybrid-form $form --steps-per-epoch 4 --epochs 1
        done
        ok "$(near "$(number "cpu-$form" loss)" "$(number "cuda-$form" loss)")" \
            "hybrid, $form: the loss is the CPU's ($(number "cpu-$form" loss), $(number "cuda-$form" loss))"
        ok "$(near "$(number "cpu-$form" val_loss)" "$(number "cuda-$form" val_loss)")" "and so is the gathered model's"
    done
    for device in cpu cuda; do
        fit_small "$device-norms" --device $device --model "$top_srcdir/tests/strategy/residual.json" --strategy hybrid --hybrid-form back --steps-per-epoch 4
    done
    ok "$(near "$(number cpu-norms loss)" "$(number cuda-norms loss)")" \
        "hybrid, back, with BatchNormalization of each rank's own pictures: the loss is the CPU's ($(number cpu-norms loss), $(number cuda-norms loss))"
    ok "$(near "$(number cpu-norms val_loss)" "$(number cuda-norms val_loss)")" "and so is the gathered model's"
    for way in powersgd:2 topk:0.1; do
        for device in cpu cuda; do
            fit_small "$device-$way" --device $device --allow-lossy --compress $way --compress-warmup 4
        done
        # what is left out depends on how the arena lies
        ok "$(awk -v a="$(number "cpu-$way" loss)" -v b="$(number "cuda-$way" loss)" 'BEGIN { d = a - b; print !(a > 0 && d < 5e-3 && d > -5e-3) }')" \
            "$way: the loss is near the CPU's ($(number "cpu-$way" loss), $(number "cuda-$way" loss))"
    done
    fit_small pipeline --device cuda --strategy pipeline --micro-batches 2 --global-batch-size 4
    same_as_cpu pipeline
    fit_small three-in-fp16 --device cuda --precision fp16
    ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number three-in-fp16 loss)" 'BEGIN { d = a - b; print !(d < 0.02 && d > -0.02 && d != 0) }')" \
        "in fp16 near what it is in fp32 ($(number on-cpu loss), $(number three-in-fp16 loss))"
    like "$(<"$own/three-in-fp16.json")" '"precision": "mixed_float16"' "which the summary says"
    fit_small rows-in-fp16 --device cuda --model mnist-cnn --strategy hybrid --hybrid-form rows --steps-per-epoch 4 --epochs 1 --precision fp16
    near_in_fp16 cpu-rows rows-in-fp16
    for way in powersgd:2 topk:0.1; do
        fit_small "fp16-$way" --device cuda --precision fp16 --allow-lossy --compress $way --compress-warmup 4
        near_in_fp16 "cuda-$way" "fp16-$way"
    done
    for precision in fp32 fp16; do
        fit_small "local-$precision" --device cuda --precision $precision --learning-rate 0.001 --model "$own/synced.json" --strategy local-sgd --allow-lossy --local-steps 3
    done
    near_in_fp16 local-fp32 local-fp16
    # What stands before the steep layers has gradients that fp16 cannot hold until the scale is small enough, what comes
    # behind them never. All ranks leave out the same steps, those of one rank.
    low=(--device cuda --precision fp16 --global-batch-size 4)
    fit_small stages-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --micro-batches 1
    fit_small columns-in-fp16 "${low[@]}" --model "$own/flat.json" --strategy hybrid --hybrid-form columns
    fit_small sent-in-fp16 "${low[@]}" --model "$own/steep.json" --allow-lossy --compress powersgd:2 --compress-warmup 0
    fit_small gathering-stages-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --micro-batches 1 --gradient-accumulation 2
    several=("${ranks[@]}")
    ranks=("${ranks[@]/%3/4}") # two replicas of two stages
    fit_small stages-twice-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --stages 2 --micro-batches 1
    ranks=()
    fit_small steep-in-fp16 "${low[@]}" --model "$own/steep.json"
    fit_small flat-in-fp16 "${low[@]}" --model "$own/flat.json"
    fit_small gathering-in-fp16 "${low[@]}" --model "$own/steep.json" --gradient-accumulation 2
    ranks=("${several[@]}")
    for pair in "steep stages" "steep stages-twice" "gathering gathering-stages" "flat columns"; do
        read -r alone together <<<"$pair"
        for value in loss val_loss; do
            ok "$(near "$(number "$alone-in-fp16" $value)" "$(number "$together-in-fp16" $value)")" \
                "$together in fp16: $value is one rank's ($(number "$alone-in-fp16" $value), $(number "$together-in-fp16" $value))"
        done
    done
    near_in_fp16 steep-in-fp16 sent-in-fp16 0.003

    # ---- with what stands in for NCCL: a step of all ranks is one recording ----
    export HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_RECORDINGS=$own/with-nccl
    # shellcheck disable=SC2016 # each rank expands
    ranks+=(bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK
        [ "$OMPI_COMM_WORLD_RANK" != "$CANNOT_RECORD" ] || export HPC_TRAIN_TEST_NO_RECORDING=1
        [ "$OMPI_COMM_WORLD_RANK" != "$MAY_NOT_RECORD" ] || export HPC_TRAIN_RECORD=0
        exec "$@"' rank)
    # replays NAME: of each rank's recordings, without those that are made to see whether it can
    replays() { grep -v " 0 replays" "$own/with-nccl" | sed 's/.*, //' | sort | uniq -c | xargs; }
    fit_nccl() { # the size of buckets is given: what stands in for NCCL takes long to be measured
        rm -f "$own/with-nccl"
        fit_small "$1" --bucket-bytes 50000 "${@:2}"
    }
    fit_nccl nccl --device cuda
    same_as_cpu nccl
    is "$(replays)" "3 19 replays" "a step of all ranks is one recording"
    fit_nccl nccl-logged --device cuda --log-dir "$own/log-nccl"
    ok "$(python3 - "$own" <<'END'
import json, sys
one, three = ([json.loads(line) for line in open(f"{sys.argv[1]}/{d}/metrics.jsonl")] for d in ("log", "log-nccl"))
print(int(not (len(one) == len(three) == 20 and all(abs(a["loss"] - b["loss"]) < 2e-4 for a, b in zip(one, three)))))
END
)" "step by step"
    sed 's/"drops"/"wide"/; /"Dropout"/d; s/"units": 16/"units": 300/' "$own/drops.json" >"$own/wide.json"
    fit_nccl chosen --device cuda --model "$own/wide.json" --strategy auto --verbose 2 --steps-per-epoch 4
    like "$out" 'strategy ([a-z-]+)( \([a-z]+\))?: [0-9.]+ ms a step; .*; 3 ranks are [a-zA-Z :]+ \([0-9.]+ times\)' \
        "auto measures, and says what"
    like "$(grep 'ms a step' <<<"$out")" 'multi-worker-mirrored.*hybrid \(|hybrid \(.*multi-worker-mirrored' "hybrid, too, where gradients take long"
    name=$(sed -n 's/^strategy \([a-z-]*\)[ :].*/\1/p' <<<"$out")
    like "$(<"$own/chosen.json")" "\"strategy\": \"$name\"" "and takes the fastest ($name)"
    several=("${ranks[@]}") ranks=()
    fit_small wide --device cpu --model "$own/wide.json" --steps-per-epoch 4
    ranks=("${several[@]}")
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number wide $value)" "$(number chosen $value)")" "with the weights from before: $value is the CPU's ($(number wide $value), $(number chosen $value))"
    done
    fit_nccl nccl-back --device cuda --model mnist-cnn --strategy hybrid --hybrid-form back --steps-per-epoch 4 --epochs 1
    ok "$(near "$(number cpu-back loss)" "$(number nccl-back loss)")" "hybrid, back: the loss is the CPU's"
    CANNOT_RECORD=1 fit_nccl one-cannot --device cuda
    same_as_cpu one-cannot
    is "$(replays)" "" "where one rank cannot, none does"
    MAY_NOT_RECORD=2 fit_nccl one-may-not --device cuda
    same_as_cpu one-may-not
    is "$(replays)" "" "where one rank may not, none does"
    fit_nccl with-timeline --device cuda --timeline "$own/timeline.json"
    same_as_cpu with-timeline
    like "$(<"$own/timeline.json")" reduction "a timeline shows the parts of a step"
    is "$(cat "$own/with-nccl" 2>/dev/null)" "" "which then is none"
    three=("${ranks[@]}") ranks=()
    fit_small uneven-on-cpu --device cpu --global-batch-size 13
    ranks=("${three[@]}")
    fit_nccl uneven --device cuda --global-batch-size 13
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number uneven-on-cpu $value)" "$(number uneven $value)")" "batches that leave ranks without samples: $value is the CPU's"
    done
    is "$(replays)" "3 1 replays 3 5 replays" "and they are recorded, too"
    for device in cpu cuda; do
        [ $device = cuda ] || ranks=()
        fit_nccl "norm-$device" --model "$own/norm.json" --device $device --sync-batch-norm --global-batch-size 13 --bucket-bytes 4096
        ranks=("${three[@]}")
    done
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number norm-cpu $value)" "$(number norm-cuda $value)")" "and say nothing in synchronized statistics: $value is the CPU's"
    done
    fit_nccl on-the-wire --device cuda --wire bf16 --allow-lossy
    ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number on-the-wire loss)" 'BEGIN { d = a - b; print !(d < 0.01 && d > -0.01 && d != 0) }')" \
        "bf16 on the wire: near ($(number on-cpu loss), $(number on-the-wire loss))"
    is "$(replays)" "3 19 replays" "in the recording"
    python3 - "$own" <<'END'
import os, random, struct, sys, zlib
random.seed(5)
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(30):
    rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(28)) for _ in range(28))
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 28, 28, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    folder = f"{sys.argv[1]}/pictures/{i % 10}"
    os.makedirs(folder, exist_ok=True)
    open(f"{folder}/{i}.png", "wb").write(whole[:len(whole) // 2] if i == 17 else whole)
END
    sed 's/28, 28\]/28, 28, 3]/' "$own/drops.json" >"$own/colours.json"
    capture "${ranks[@]}" "$train" fit --model "$own/colours.json" --data "$own/pictures" --global-batch-size 6 --epochs 2 --seed 3 --device cuda
    is "$status" 65 "a damaged picture on one rank ends all, before the first step"
    like "$err" "pictures/7/17.png: it is damaged" "and it is named"

    # ---- several devices of a rank: a replica on each ----
    export HPC_TRAIN_TEST_DEVICES=3
    ranks=()
    fit_nccl replicas --device cuda --replicas 3
    same_as_cpu replicas
    is "$(replays)" "3 19 replays" "a step of all replicas is one recording"
    like "$(<"$own/replicas.json")" '"replicas": 3' "which the summary says"
    is "$(sed 's/ bytes sent.*//' "$own/account")" $((12 * (2 * 40 + 2 * 12) + 3 * 20 * 24)) "each is sent the numbers of its pictures, and flags"
    HPC_TRAIN_TEST_FULL=2 fit_nccl central --device cuda --strategy central-storage --replicas 3
    same_as_cpu central
    is "$(sed 's/ bytes sent.*//' "$own/account")" $(((4 * 28 * 28 + 4) * (2 * 40 + 2 * 12) + 3 * 20 * 24)) "where one has no room for all, its pictures"
    like "$(<"$own/central.json")" '"strategy": "central-storage"' "one update for all, the summary says"
    fit_nccl central-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy central-storage --replicas 3
    ok "$(near "$(number steep-in-fp16 loss)" "$(number central-in-fp16 loss)")" \
        "in fp16 they leave out the steps of one ($(number steep-in-fp16 loss), $(number central-in-fp16 loss))"
    fit_nccl central-adam --device cuda --strategy central-storage --replicas 3 --optimizer adam --gradient-accumulation 2
    fit_small central-adam-on-cpu --device cpu --optimizer adam --gradient-accumulation 2
    ok "$(near "$(number central-adam-on-cpu loss)" "$(number central-adam loss)")" "with slots, and gradients of two batches: the loss is the CPU's"
    ok "$(($(number central bytes_sent_per_step) < 3 * $(number replicas bytes_sent_per_step) / 2))" "weights are sent besides gradients"
    fit_nccl central-of-one --device cuda --strategy central-storage
    same_as_cpu central-of-one
    fit_nccl replicas-uneven --device cuda --replicas 3 --global-batch-size 13 --optimizer adam
    ranks=()
    fit_small replicas-on-cpu --device cpu --global-batch-size 13 --optimizer adam
    for value in loss accuracy val_loss val_accuracy; do
        ok "$(near "$(number replicas-on-cpu $value)" "$(number replicas-uneven $value)")" "replicas without samples: $value is the CPU's"
    done
    ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK; exec "$@"' rank)
    fit_nccl ranks-of-replicas --device cuda --replicas 2 --precision fp16
    ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number ranks-of-replicas loss)" 'BEGIN { d = a - b; print !(d < 0.02 && d > -0.02 && d != 0) }')" \
        "two ranks of two replicas, in fp16: near ($(number on-cpu loss), $(number ranks-of-replicas loss))"
    is "$(replays)" "4 19 replays" "one recording for all four"
    ranks=()
    if [ $gpu = emulated ] && [ -z "${HPC_TRAIN_TEST_ENGINES-}${HPC_TRAIN_TEST_SCHEDULE-}" ]; then
        # What has been asked of devices that find nothing measured, and keep it nowhere, over what those ask that find it all.
        asked() { awk '{ sum += $(NF - 1) } END { print sum }' "$own/enqueued"; }
        measuring() { # REPLICAS
            local cache warm=0
            for cache in "$own/equal-gpus" "$own/equal-gpus" /dev/null/none; do
                warm=$(asked 2>/dev/null)
                rm -f "$own/enqueued"
                capture env HPC_TRAIN_TEST_ACCOUNT="$own/enqueued" XDG_CACHE_HOME="$cache" "$train" bench \
                    --model mnist-convnet --batch-size $((2 * $1)) --steps 3 --device cuda --replicas "$1" --bucket-bytes 50000
            done
            echo $(($(asked) - warm))
        }
        alone=$(measuring 1) pair=$(measuring 2)
        ok $((alone < 100 || pair > alone * 3 / 2)) "what one of two equal GPUs has measured the other one finds ($alone, $pair)"
    fi
    capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device cuda --replicas 2 --bucket-bytes 50000 --summary-json "$own/bench.two.json"
    is "$status" 0 "bench" || diag "$err"
    capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device cuda --replicas 2 --profile
    is "$status" 64 "a profile is of one"
    capture "$train" fit "${steps[@]}" --batch-size 8 --device cuda --replicas 4
    is "$status" 78 "more replicas than devices are refused"
    like "$err" "4 replicas need as many GPUs, and this task does not see so many: ask for more" "with what to ask for"
    capture env -u HPC_TRAIN_TEST_NCCL "$train" fit "${steps[@]}" --batch-size 8 --device cuda --replicas 2
    is "$status" 78 "without NCCL, too"
    like "$err" "replicas on several GPUs need NCCL: replica 0: there is no NCCL behind the wall" "with the reason"
    if [ -n "${HPC_TRAIN_LONG-}" ]; then # half a minute of patience
        capture env HPC_TRAIN_TEST_FAILS=1 timeout 55 "$train" fit --model "$own/tiny.json" --resize 28x28 --data "$own/small" \
            --global-batch-size 4 --epochs 100 --device cuda --replicas 3 --bucket-bytes 50000
        is "$status" 70 "a GPU that fails ends all replicas"
        like "$err" "replica 1: (the device behind the wall is broken; other replicas have waited for it for 30 s|cudaGraphLaunch: emulated CUDA error 700)" "and the process says which"
    fi
    if [ $gpu = emulated ]; then
        # A call that fails on one rank in the midst of what all take part in: none waits for what does not come.
        # shellcheck disable=SC2016 # each rank expands
        ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK
            [ "$OMPI_COMM_WORLD_RANK" != 1 ] || export HPC_TRAIN_TEST_REFUSES=$REFUSED
            exec "$@"' rank)
        in_company() { # CALL:N
            capture env REFUSED="$1" timeout 40 "${ranks[@]}" "$train" fit --model "$own/norm.json" --resize 28x28 --data "$own/small" \
                --global-batch-size 4 --epochs 2 --verbose 0 --device cuda --strategy multi-worker-mirrored --bucket-bytes 50000
        }
        refused() { # CALL:N PATTERN
            in_company "$1"
            like "$status" '^(69|70)$' "$1 fails on rank 1: both end"
            like "$err" "$2" "and say what failed"
            like "$err" "rank 1( \(.*\))?: " "and whose"
        }
        in_company nothing:1 # and what is measured is known
        is "$status" 0 "two ranks of which nothing fails" || diag "$err"
        refused nccl:2 "rank 1: a collective: ncclAllGather: an emulated error"
        refused cudaStreamWaitEvent:3 "rank 1: a collective: cudaStreamWaitEvent: emulated CUDA error 719"
        refused launch:6 "(forward|backward) of layer [a-z]+: .*: emulated CUDA error 719"
        refused cudaStreamEndCapture:2 "this step cannot be recorded \(HPC_TRAIN_RECORD=0 goes without\): cudaStreamEndCapture: "
        unlike "$err" "another rank or replica could not" "who only heard of it lets the other one say why"
    fi
    unset HPC_TRAIN_TEST_NCCL HPC_TRAIN_TEST_RECORDINGS HPC_TRAIN_TEST_DEVICES
else
    skip "mpirun" "there is none"
fi
unset HPC_TRAIN_TEST_ACCOUNT

# ---- parameter servers, in the host's memory, and workers on devices ----
# serve NAME DEVICE-OF-WORKER-0 DEVICE-OF-WORKER-1: two servers, synchronous, as on-cpu
serve() {
    rm -f "$own/account"
    local port=$((21000 + RANDOM % 8000)) cluster rank role index device pids=() worst=0
    cluster="\"ps\":[\"127.0.0.1:$port\",\"127.0.0.1:$((port + 1))\"],\"worker\":[\"127.0.0.1:$((port + 2))\",\"127.0.0.1:$((port + 3))\"]"
    for rank in 0 1 2 3; do
        role=ps index=$rank device=cuda
        if [ $rank -ge 2 ]; then role=worker index=$((rank - 2)) device=${*:rank:1}; fi
        HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.$1\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index},\"rank\":$rank,
            \"local_rank\":$rank,\"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":4,\"gpus\":0}]}" \
            timeout --kill-after=5 100 "$train" fit --strategy parameter-server --ps-sync --model "$own/tiny.json" --resize 28x28 --data "$own/small" \
            --validation-data "$own/small" --augment flip,crop:3 --global-batch-size 4 --epochs 2 --seed 3 --verbose 0 \
            --summary-json "$own/$1.json" --device "$device" "${@:4}" >"$own/$1.$rank.out" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || worst=$?; done
    is $worst 0 "$1" || diag "$(cat "$own/$1".*.out)"
}
export HPC_TRAIN_TEST_ACCOUNT=$own/account
serve workers-on-devices cuda cuda
same_as_cpu workers-on-devices
is "$(cat "$own/account" 2>/dev/null | wc -l)" 2 "both workers, and no server, have a device"
serve one-on-a-device cpu auto
same_as_cpu one-on-a-device
# Of two pictures the statistics are the signs of what rounding leaves between them: of ten they are not.
for size in 10 6; do # of the workers: one that looks for engines while the other trains comes too late
    fit_small warm-in-bf16 --device cuda --precision bf16 --model "$own/norm.json" --global-batch-size $size
done
serve in-bf16 cuda cuda --precision bf16 --model "$own/norm.json" --global-batch-size 20
fit_small in-bf16-alone --device cuda --precision bf16 --model "$own/norm.json" --global-batch-size 20
ok "$(awk -v a="$(number in-bf16-alone val_loss)" -v b="$(number in-bf16 val_loss)" 'BEGIN { d = a - b; print !(a > 0 && d < 0.1 && d > -0.1) }')" \
    "bf16 on devices, statistics of each worker's pictures: near ($(number in-bf16-alone val_loss), $(number in-bf16 val_loss))"
# Servers know of no loss scale: what overflows is computed again, and no step is left out.
serve served-in-fp16 cuda cuda --precision fp16 --model "$own/steep.json"
fit_small steep-in-fp32 --device cuda --model "$own/steep.json"
near_in_fp16 steep-in-fp32 served-in-fp16 0.001
unset HPC_TRAIN_TEST_ACCOUNT

done_testing
