#!/bin/bash
# One rank that trains on a device: losses and predictions are the CPU's, what a step asks of the device, what is refused.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"

steps=(--model "$own/tiny.json" --data synthetic:12 --batch-size 2 --verbose 2)
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

# What NVML says of it (the emulated machine's first GPU is on bus 1) is in status.json.
nvml=$top_builddir/tests/gpu_without/libraries/.libs
gpu_of() { grep -o '"gpu":[0-9a-z.]*' "$own/cuda/status.json"; }
if [ -e "$nvml/libnvidia-ml.so.1" ]; then
    for bus in 01 07; do
        echo "gpu 0 pci 00000000:$bus:00.0 node 0 uuid GPU-1" >"$own/nvml"
        rm -r "$own/cuda"
        HPC_TRAIN_TEST_RECORDINGS=/dev/null LD_LIBRARY_PATH=$nvml:${LD_LIBRARY_PATH-} FAKE_NVML=$own/nvml FAKE_NVML_BUSY=37 fit cuda
        is "$status $(gpu_of)" "0 \"gpu\":$([ $bus = 01 ] && echo 0.37 || echo null)" "how busy it is, bus $bus" || diag "$err"
    done
else
    skip "how busy the GPU is" "NVML's stand-in is not built"
fi

capture "$train" evaluate --model "$own/tiny.json" --data synthetic:4 --weights "$own/cuda.safetensors" --device cuda
is "$status" 0 "evaluation"
# Groups of 64 pictures, the last one with 6: from the device's copy of the data, and resized by the host.
predict() { # NAME DATA OPTION…
    capture "$train" predict --model "$own/tiny.json" --weights "$own/tiny.safetensors" --top-k 10 --data "$2" --output "$own/$1.csv" "${@:3}"
    is "$status $err" "0 " "predictions: $*"
}
alike() { # NAME NAME
    python3 - "$own" "$@" <<'END'
import csv, sys
a, b = ([{row[1 + 2 * k]: float(row[2 + 2 * k]) for k in range(10)} for row in list(csv.reader(open(f"{sys.argv[1]}/{name}.csv")))[1:]]
        for name in sys.argv[2:])
assert len(a) == len(b) > 0
assert max(abs(x[c] - y[c]) for x, y in zip(a, b) for c in x) < 1e-5
END
}
"$train" fit --model "$own/tiny.json" --data synthetic:12 --batch-size 4 --verbose 0 --save-weights "$own/tiny.safetensors" --device cpu
for data in synthetic:70 "$own/small"; do
    resize=()
    [ "$data" = synthetic:70 ] || resize=(--resize 28x28)
    predict host "$data" "${resize[@]}" --device cpu
    predict device "$data" "${resize[@]}" --device cuda
    alike host device
    ok $? "the same predictions of ${data##*/} as the CPU's"
    predict again "$data" "${resize[@]}" --device cuda --batch-size 7
    is "$(cmp "$own/device.csv" "$own/again.csv" 2>&1)" "" "and the same bytes with another batch"
done
# A step is called once, recorded when it comes again, and replayed, in 10 of 12 steps: the first one behind an evaluation does
# not copy the parameters again, so it is another.
is "$(sed 's/.*, //' "$own/recordings" | sort | uniq -c | xargs)" "1 10 replays" "a step is one recording"
changing=(--optimizer adam --schedule cosine --warmup-epochs 1 --clip-norm 1)
steps=(--model "$own/varies.json" --data synthetic:12 --batch-size 2 --verbose 2 "${changing[@]}")
fit cpu --device cpu
rm -r "$own/cuda"
fit cuda
is "$status" 0 "a model that draws, all random layers of images, a rate that changes" || diag "$err"
same cpu cuda
ok $? "the same losses and accuracies"
is "$(tail -n 1 "$own/recordings" | sed 's/.*, //')" "10 replays" "also of a step that is replayed"
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
steps=(--model "$own/tiny.json" --data synthetic:12 --batch-size 2 --verbose 2)
unset HPC_TRAIN_TEST_RECORDINGS
capture "$train" fit "${steps[@]}" --device cuda --optimizer adam --gradient-accumulation 2 --top-k 3 --global-clip-norm 1
is "$status" 0 "an optimizer with slots, accumulation, top-k"
fit_small frozen-on-cpu --device cpu --freeze first
fit_small frozen --device cuda --freeze first
ok "$(near "$(number frozen-on-cpu loss)" "$(number frozen loss)")" "frozen layers: the loss is the CPU's"
for test in ${HPC_TRAIN_LONG:+nn/backend/test_conv2d nn/backend/test_ops nn/plan/test_freeze nn/run/test_train}; do
    [ -e "$top_builddir/tests/unit/$test" ] || continue
    capture env HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_BACKEND=cuda "$top_builddir/tests/unit/$test"
    is "$status" 0 "${test##*/}'s cases there" || diag "$out" "$err"
    [ "$test" != nn/backend/test_conv2d ] || [ -n "${HPC_TRAIN_TEST_ENGINES-}" ] || # as engines are drawn, maybe none
        like "$out $err" "([1-9][0-9]*) of [0-9]+ convolutions added to gradients" "and add to others' gradients"
done
# Where libraries take long, own kernels are taken: then a step of this model is 16 calls, six of them products of cuBLASLt.
tests=(test_ops)
[ -z "${HPC_TRAIN_LONG-}" ] || tests+=(test_conv2d)
for test in "${tests[@]}"; do
    if [ -e "$top_builddir/tests/unit/nn/backend/$test" ]; then
        capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/slow" HPC_TRAIN_SHORT=1 HPC_TRAIN_TEST_BACKEND=cuda \
            "$top_builddir/tests/unit/nn/backend/$test"
        is "$status" 0 "$test with own kernels for small windows" || diag "$err"
    else
        skip "$test with own kernels for small windows" "the unit tests are not built: no cmocka"
    fi
done
capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/slow" HPC_TRAIN_TEST_RECORDINGS="$own/own-kernels" \
    "$train" bench --model mnist-cnn --batch-size 8 --steps 2 --device cuda --precision bf16
is "$status" 0 "mnist-cnn with them" || diag "$err"
is "$(cut -d, -f1 "$own/own-kernels")" "16 calls" "parameters are copied at once, the first layer has own kernels, the large kernel is updated with its gradient"
# Copies are made beside the rest.
capture env HPC_TRAIN_TEST_SLOW_LIBRARIES=1 XDG_CACHE_HOME="$own/in-branches" HPC_TRAIN_TEST_RECORDINGS="$own/branches" \
    "$train" bench --model mnist-cnn --batch-size 8 --steps 2 --device cuda --precision bf16
is "$(cut -d, -f1,2 "$own/branches")" "16 calls, 15 after each other" "copies are made beside others"
# What a replayed step asks of the device besides: a mark, behind which its loss is on the host.
enqueued() {
    rm -f "$own/enqueued"
    capture env HPC_TRAIN_TEST_ACCOUNT="$own/enqueued" "$train" bench --model mnist-convnet --batch-size 2 --steps "$1" --device cuda
    sed 's/.*, \([0-9]*\) enqueued/\1/' "$own/enqueued"
}
enqueued 10 >"$own/warm"
is $(($(enqueued 20) - $(enqueued 10))) 20 "a step is a graph and a mark"
# Where cuDNN has no engine, and own kernels are slower, that is said once, with the layer.
if [ -z "${HPC_TRAIN_TEST_ENGINES-}" ]; then
    without_engine() { # SEED WHAT
        capture env HPC_TRAIN_TEST_ENGINES="$1" XDG_CACHE_HOME="$own/no-engine-$1" "$train" bench --model "$own/tiny.json" --batch-size 4 --steps 2 \
            --device cuda --precision bf16
        is "$status $(lines "$err")" "0 1" "a graph without an engine" || diag "$err"
        like "$err" "slow: layer second: $2 by own kernels \([0-9.e-]+ ms\): cuDNN propose[sd] no engine" "says which layer, why, and what it costs"
    }
    without_engine 19 forward
    without_engine 19 forward
    without_engine 4 "gradient of its kernel"
fi
for device in cpu cuda; do
    capture "$train" bench --model mnist-convnet --batch-size 4 --steps 3 --device $device --summary-json "$own/bench.$device.json"
    [ -n "${HPC_TRAIN_TEST_ENGINES-}" ] || is "$err" "" "nothing is slow there"
    is "$status" 0 "bench, $device"
done
loss_of() { sed -n 's/^ *"loss": \([0-9.]*\).*/\1/p' "$own/bench.$1.json"; }
ok "$(awk -v a="$(loss_of cpu)" -v b="$(loss_of cuda)" 'BEGIN { d = a - b; print !(a > 0 && d < 1e-4 && d > -1e-4) }')" \
    "with the same losses, from pictures that were sent once ($(loss_of cpu), $(loss_of cuda))"
capture "$train" info
like "$out" "NCCL +libnccl-missing.so" "info says whether there is NCCL"
like "$out" "GPU 0 +emulated GPU, 8.0 GiB, compute capability 9.0" "lists GPUs"
capture env HPC_TRAIN_TEST_DEVICES=2 "$train" info
like "$out" "to the others: 1 by NVLink" "and their links"
like "$(<"$own/bench.cuda.json")" '"device_used_mb": [0-9.]+' "bench says what was taken of the GPU"
ok "$(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(int(not 0.9 < j["predicted_mb"] / j["device_used_mb"] < 1.1))' \
    "$own/bench.cuda.json")" "within 10 % of what was planned"
ok "$(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(int(not 0.999 < j["train_seconds"] * j["images_per_second"] / 12 < 1.001))' \
    "$own/bench.cuda.json")" "and its rate is of all steps, to the end of the last"

capture env HPC_TRAIN_TEST_USED=8157 "$train" bench --model mnist-convnet --batch-size 10000 --steps 1 --device cuda
is "$status" 78 "a batch that the device has no room for"
like "$err" "batch size 10000 takes [0-9.]+ GiB \(most activations in backward of layer [a-z0-9_]+: [0-9.]+ GiB\), more than the [0-9.]+ [GM]iB that a rank may take \(GPU\): at most [0-9]+ fits" \
    "says how much, in which layer, and what would fit"
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
capture env HPC_TRAIN_TEST_TAKEN=8152 "$train" bench --model "$own/tiny.json" --batch-size 400 --steps 1 --device cuda
is "$status" 78 "room that somebody else has taken meanwhile"
like "$err" "the GPU is out of memory: [0-9]+ MiB are needed for activations, most of them in backward, layer [a-z0-9_]+, and of its 8192 MiB [0-9]+ are free: take a smaller batch" \
    "says what is missing"

# ---- pictures that lie on the device, sums that are looked at later ----

fit_small on-device --device cuda
same_as_cpu on-device
read -r sent waits < <(sed 's/ bytes sent, / /; s/ waits.*//' "$own/account")
# 20 steps and 6 batches of evaluation; 12 bytes a picture
is "$sent" $((12 * (2 * 40 + 2 * 12))) "a step sends numbers of pictures, not pictures"
ok "$((waits >= 26))" "and does not wait for the device ($waits waits, building and evaluating)"
# What the host rotates and mixes: pictures are sent, and rows of targets.
fit_small mixed-on-cpu --device cpu --augment rotation:0.1,mixup:0.4
fit_small mixed --device cuda --augment rotation:0.1,mixup:0.4 --verbose 2
like "$out" "--augment: pictures are prepared on the host, not on the GPU" "--verbose 2 says who prepares them"
same_as mixed-on-cpu mixed
# A block of ResNetV2's and one of ResNet's: an Add leaves sums to a normalization.
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
# At a larger rate rounding grows from step to step: with other numbers of threads by more than what an error changes.
for device in cpu cuda; do
    fit_small "blocks-$device" --device $device --model "$own/blocks.json" --learning-rate 0.05
done
ok "$(near "$(number blocks-cpu loss)" "$(number blocks-cuda loss)")" \
    "blocks: loss is the CPU's ($(number blocks-cpu loss), $(number blocks-cuda loss))"
# Each fusion can be left out, with the same losses.
plan_without() { # NAME
    HPC_TRAIN_WITHOUT=$1 HPC_TRAIN_DEBUG=plan "$train" bench --model "$own/blocks.json" --batch-size 4 --steps 1 --device cuda 2>&1
}
plan=$(plan_without "")
while read -r name said; do
    ok "$(($(grep -c "$said" <<<"$plan") <= $(plan_without "$name" | grep -c "$said")))" "$name is left out of the plan"
    HPC_TRAIN_WITHOUT=$name fit_small "without-$name" --device cuda --model "$own/blocks.json" --learning-rate 0.05
    ok "$(near "$(number blocks-cpu loss)" "$(number "without-$name" loss)")" "and the loss is the CPU's ($(number "without-$name" loss))"
done <<'END'
add-norm is applied by
bias leaves its bias to
sum does the sum of
END
HPC_TRAIN_WITHOUT=shared-gradient,small,fused-update fit_small without-others --device cuda --model "$own/blocks.json" --learning-rate 0.05
ok "$(near "$(number blocks-cpu loss)" "$(number without-others loss)")" "nor is it another one without the GPU's own ways ($(number without-others loss))"
capture env HPC_TRAIN_WITHOUT=bias,biases "$train" bench --model "$own/blocks.json" --batch-size 4 --steps 1 --device cuda
like "$err" "HPC_TRAIN_WITHOUT: 'biases' is none of the ways" "an unknown word is reported"
for device in cpu cuda; do
    fit_small "residual-$device" --device $device --model "$top_srcdir/tests/strategy/residual.json" --steps-per-epoch 5
done
same_as residual-cpu residual-cuda "loss val_loss"
fit_small logged --device cuda --log-dir "$own/log"
same_as_cpu logged
is "$(wc -l <"$own/log/metrics.jsonl")" 20 "a log has each step's"

done_testing
