# shellcheck shell=bash disable=SC2154 # variables of tests/gpu/run, and of step in tests/gpu/lib.sh
# tests/gpu/steps.sh - what the steps of tests/gpu/run do; each is a function that fails with a status, and says in a
# line that begins with "= " what came of it. Sourced.

# ---- the machine ----

device_info() {
    {
        date -u '+%F %H:%M UTC'
        echo "hpc-train $(cat "$here/../revision" 2>/dev/null || git -C "$here" describe --always --dirty)"
        nvidia-smi --query-gpu=name,driver_version,persistence_mode,memory.total,clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader
        ldd --version | head -n 1
        df -h /dev/shm | tail -n 1
        [ -z "$python" ] || "$python" -c 'import torch; print("PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version(), "NCCL", torch.cuda.nccl.version())'
        "$hpc_train" info | grep -aiE 'version|cuda|cudnn|nccl|gpu'
    } | tee "$results/device.txt"
    say "= $(sed -n '2p;3p' "$results/device.txt" | paste -sd' ')"
    nvidia-smi -L
}

# For tests/fixtures/gpu, by which tests without a GPU ask cuDNN.
properties() {
    "$any_python" "$here/properties.py" >"$results/properties.json" || exit 77
    say "= $(grep -o '"deviceName": "[^"]*"' "$results/properties.json")"
}

# Bytes moved by a large copy on the device, read and written.
bandwidth() {
    [ -n "$python" ] || exit 77
    "$python" - >"$results/bandwidth.json" <<'END'
import json, torch
a = torch.empty(1 << 31, dtype=torch.uint8, device="cuda").random_()
b = torch.empty_like(a)
times = []
for i in range(12):
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    begin.record(); b.copy_(a); end.record(); torch.cuda.synchronize()
    times.append(begin.elapsed_time(end) / 1e3)
print(json.dumps({"bytes_per_second": 2 * a.numel() / sorted(times)[len(times) // 2]}))
END
    local code=$?
    say "= $(cat "$results/bandwidth.json")"
    return $code
}

# ---- results ----

# A test's cases on the GPU; a program that does not know the variable would test the CPU.
unit() { # NAME
    if ! grep -aq HPC_TRAIN_TEST_BACKEND "$unit_dir/$1"; then
        say "= $1 has no cases on another backend"
        return 77
    fi
    # cuDNN's engines are measured for each shape: a tenth of the cases, unless HPC_TRAIN_LONG is set
    local few=(HPC_TRAIN_SHORT=1)
    [ -z "${HPC_TRAIN_LONG-}" ] || few=()
    env "${few[@]}" HPC_TRAIN_DEBUG=ops HPC_TRAIN_TEST_BACKEND="$device" NVIDIA_TF32_OVERRIDE=0 "$unit_dir/$1" || return
    say "= $1"
}

# Losses of some steps on the GPU beside those on the CPU, which tests/peers holds against Keras and PyTorch. As many steps,
# with rates as small, as leave two runs on processors that round differently 1e-3 apart at most.
beside_cpu() { # MODEL STEPS ARGUMENT...
    local model=$1 steps=$2 on low=() most=2e-3 name=$1
    shift 2
    [ "${precision-fp32}" = fp32 ] || name=$model-$precision most=2e-2
    for on in cpu "$device"; do
        [ "$on" = cpu ] || [ "${precision-fp32}" = fp32 ] || low=(--precision "$precision")
        # Several such runs share the processors: no thread may spin.
        OMP_WAIT_POLICY=passive NVIDIA_TF32_OVERRIDE=0 "$hpc_train" fit --model "$model" --device "$on" --steps-per-epoch "$steps" --verbose 0 \
            --seed 3 --summary-json "$results/same-$name-$on.json" "${low[@]}" "$@" || return
    done
    "$any_python" - "$results/same-$name-cpu.json" "$results/same-$name-$device.json" "$name" $most <<'END'
import json, sys
cpu, cuda = (json.load(open(name))["loss"] for name in sys.argv[1:3])
apart = abs(cpu - cuda) / abs(cpu)
print(f"= {sys.argv[3]}: loss {cpu:.6f} on the CPU, {cuda:.6f} on the GPU, {apart:.1e} apart")
sys.exit(not apart < float(sys.argv[4]))
END
}

beside_cpu_in_fp16() {
    precision=fp16
    [ "$device" != cpu ] || precision=fp32
    beside_cpu "$@"
}

torch_models() {
    [ -n "$python" ] || exit 77
    HPC_TRAIN_TEST_BACKEND=$device NVIDIA_TF32_OVERRIDE=0 "$python" "$peers_dir/nn_torch.py" "$peers_dir/nn_models"
    local code=$?
    say "= nn_torch.py: $(grep -ac '^ok' "$out") cases ok, $(grep -ac '^not ok' "$out") not"
    ! grep -aq '^not ok' "$out" && return $code
}

# Engines are chosen before, without it: it makes everything slow, and not alike. Races within libraries' kernels are their
# makers' affair; what they reach outside of memory is ours, who gave it to them.
sanitizer() { # TOOL MODEL ARGUMENT...
    local tool=$1 model=$2 code options
    shift 2
    [ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || exit 77
    # Libraries ask the driver for what it may not have; this program checks its own calls.
    options=(--report-api-errors no)
    if [ "$tool" = racecheck ]; then
        options+=(--racecheck-detect-level error)
        for code in cudnn cublas xmma cutlass cask gemm nvjet splitK; do options+=(--kernel-name-exclude "kns=$code"); done
    fi
    export XDG_CACHE_HOME=$results/cache-sanitizer-$tool-$model
    "$hpc_train" bench --model "$model" --device "$device" --steps 1 "$@" || return
    compute-sanitizer --tool "$tool" "${options[@]}" --error-exitcode 99 --print-limit 5 "$hpc_train" bench --model "$model" \
        --device "$device" --steps 1 "$@"
    code=$?
    say "= $tool, $model: $(grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY\|hazard' "$out" | tail -n 1 | sed 's/^=* *//')"
    return $code
}

# ---- times ----

# The first time with nothing measured yet, and no engine chosen.
w1() { # EPOCHS CACHE
    [ -n "$data" ] || exit 77
    local start end
    export XDG_CACHE_HOME=$2
    start=$(date +%s.%N)
    "$hpc_train" fit --model mnist-cnn --device "$device" --data "$data" --validation-data "$data" --epochs "$1" --verbose 2 \
        --summary-json "$results/w1.json" || return
    end=$(date +%s.%N)
    say "= $1 epochs in $(awk "BEGIN { printf \"%.2f\", $end - $start }") s, start and end included (published: 24.0 s for 8)"
}

cifar() {
    "$hpc_train" fit --model resnet50v2 --device "$device" --data "$cifar" --validation-data "$cifar" --resize 128x128 --classes 10 \
        --batch-size 256 --epochs 5 --precision bf16 --verbose 2 --summary-json "$results/cifar.json" || return
    "$any_python" - "$results/cifar.json" <<'END'
import json, sys
summary = json.load(open(sys.argv[1]))
seconds = sorted(summary["epoch_seconds"])
print(f"= epochs of {seconds[0]:.2f} to {seconds[-1]:.2f} s (published: 45), accuracy {summary['accuracy']:.3f} (published: .507), "
      f"validation's {summary['val_accuracy']:.3f}")
END
}

# CASE: arguments of bench, and of peer.py
bench_arguments() {
    case $1 in
        w1-64) echo "--model mnist-cnn --batch-size 64 --steps 100000" ;;
        w1-256) echo "--model mnist-cnn --batch-size 256 --steps 50000" ;;
        resnet50-128) echo "--model resnet50 --batch-size 128 --steps 100 --momentum 0.9" ;;
        resnet50-256) echo "--model resnet50 --batch-size 256 --steps 60 --momentum 0.9" ;;
        resnet50v2-256) echo "--model resnet50v2 --resize 128x128 --batch-size 256 --steps 100 --momentum 0.9" ;;
        resnet152v2-256) echo "--model resnet152v2 --resize 128x128 --batch-size 256 --steps 50 --momentum 0.9" ;;
    esac
}
peer_arguments() {
    case $1 in
        w1-64) echo "mnist-cnn 64 28" ;;
        w1-256) echo "mnist-cnn 256 28" ;;
        resnet50-128) echo "resnet50 128 224" ;;
        resnet50-256) echo "resnet50 256 224" ;;
        resnet50v2-256) echo "resnet50v2 256 128" ;;
        resnet152v2-256) echo "resnet152v2 256 128" ;;
    esac
}

gpu_memory() { # MiB in use
    local used
    used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1)
    if [[ $used =~ ^[0-9]+$ ]]; then echo "$used"; else echo 0; fi # some machines do not say
}

# bench; engines are chosen before, which loads what is not used then, and counts as memory.
ours() { # CASE [ARGUMENT...]
    local case=$1 arguments
    read -ra arguments <<<"--device $device --precision bf16 $(bench_arguments "$case")"
    "$hpc_train" bench "${arguments[@]}" --steps 1 "${@:2}" || return
    "$hpc_train" bench "${arguments[@]}" --summary-json "$results/ours-$case.json" "${@:2}" || return
    "$any_python" - "$results/ours-$case.json" <<'END'
import json, sys
summary = json.load(open(sys.argv[1]))
print(f"= {summary['images_per_second']:,.0f} images/s, predicted {summary['predicted_mb']:,.0f} MiB, used {summary['device_used_mb']:,.0f}"
      if summary["device_used_mb"] else f"= {summary['images_per_second']:,.0f} images/s")
END
}

# What makes a step faster (HPC_TRAIN_WITHOUT), beginning with none of it: each is kept if it is right and faster than
# without in one of the cases, and slower in none. switches.tsv: name, case, images/s without and with, verdict.
switches() {
    local off=(add-norm bias sum shared-gradient small fused-update) name case list
    read -ra cases_here <<<"${HPC_TRAIN_TEST_CASES:-w1-64 resnet50-128 resnet50v2-256}"
    local all=$((${#off[@]} * ${#cases_here[@]}))
    : >"$results/switches.tsv"
    try_without() { # LIST CASE: loss and images/s, or nothing
        local arguments file=$results/switch.json
        read -ra arguments <<<"--device $device --precision bf16 $(bench_arguments "$2")"
        rm -f "$file"
        HPC_TRAIN_WITHOUT=$1 timeout 60 "$hpc_train" bench "${arguments[@]}" --steps "${HPC_TRAIN_TEST_STEPS:-60}" --summary-json "$file" >&2 || return
        "$any_python" -c 'import json, sys; s = json.load(open(sys.argv[1])); print(s["loss"], s["images_per_second"])' "$file"
    }
    local join_by=, now=() before=()
    without() { (IFS=$join_by && echo "${off[*]}"); }
    for case in "${cases_here[@]}"; do before+=("$(try_without "$(without)" "$case")"); done
    for name in "${off[@]}"; do
        list=$(printf '%s\n' "${off[@]}" | grep -vx "$name" | paste -sd,)
        now=()
        for case in "${cases_here[@]}"; do now+=("$(try_without "$list" "$case")"); done
        if "$any_python" - "$results/switches.tsv" "$name" "${cases_here[*]}" "$(printf '%s;' "${before[@]}")" "$(printf '%s;' "${now[@]}")" <<'END'
import sys
path, name, cases, before, now = sys.argv[1:]
before, now = ([[float(v) for v in one.split()] for one in text.split(";")[:-1]] for text in (before, now))
known = [(case, b, n) for case, b, n in zip(cases.split(), before, now) if b]
wrong = [case for case, b, n in known if not n or not abs(n[0] - b[0]) <= 5e-3 * abs(b[0])]
gains = [n[1] / b[1] for _, b, n in known if n]
keep = not wrong and gains and max(gains) > 1.005 and min(gains) > 0.99
with open(path, "a") as out:
    for case, b, n in known:
        verdict = "failed" if not n else "another loss" if case in wrong else "kept" if keep else "not kept"
        print(name, case, f"{b[1]:.0f}", f"{n[1]:.0f}" if n else "-", verdict, sep="\t", file=out)
sys.exit(not keep)
END
        then
            mapfile -t off < <(printf '%s\n' "${off[@]}" | grep -vx "$name")
            before=("${now[@]}")
        fi
    done
    cat "$results/switches.tsv"
    say "= off: $(without)"
    # a case that fails without any of them has no lines
    [ "$(wc -l <"$results/switches.tsv")" -eq $all ] && ! grep -qE $'\t(failed|another loss)$' "$results/switches.tsv"
}

# A case again, otherwise: what that gives.
ours_otherwise() { # NAME CASE PRECISION [VARIABLE=VALUE...]
    local name=$1 case=$2
    # shellcheck disable=SC2046 # several words
    env "${@:4}" "$hpc_train" bench --device "$device" --precision "$3" $(bench_arguments "$case") --summary-json "$results/ours-$name.json" || return
    "$any_python" - "$results" "$name" "$case" <<'END'
import json, sys
def rate(name):
    try:
        return f'{json.load(open(f"{sys.argv[1]}/ours-{name}.json"))["images_per_second"]:,.0f}'
    except OSError:
        return "not measured"
print(f"= {sys.argv[3]}, {sys.argv[2]}: {rate(sys.argv[2])} images/s, else {rate(sys.argv[3])}")
END
}

theirs() { # CASE MODE...
    [ -n "$python" ] || exit 77
    local case=$1 code
    shift
    # shellcheck disable=SC2046 # several words
    "$python" "$here/peer.py" $(peer_arguments "$case") "$@" --device "$device" --results "$results/torch-$case"
    code=$?
    say "= images/s: $(sed 's/.*"mode": "\([a-z-]*\)", "images_per_second": \([0-9]*\).*/\1 \2/' "$results/torch-$case"-*.json | paste -sd, | sed 's/,/, /g')"
    return $code
}

# torch.compile keeps what it made on disk; that takes minutes of the processors, while other steps use them little. Two at a
# time: the GPU's memory has no room for all.
warm_cases() { # CASE...
    local case failed=0
    for case in "$@"; do
        # shellcheck disable=SC2046 # several words
        "$python" "$here/peer.py" $(peer_arguments "$case") compile --warm --device "$device" >"$results/warm-$case.out" 2>&1 || failed=1
    done
    return $failed
}
warm_compile() {
    local first code
    warm_cases resnet152v2-256 w1-64 w1-256 &
    first=$!
    warm_cases resnet50v2-256 resnet50-128 resnet50-256
    code=$?
    wait $first || code=1
    # what was chosen by measuring, beside others, is chosen anew
    find "$TORCHINDUCTOR_CACHE_DIR" -name '*.best_config' -delete
    return $code
}

# ---- ranks ----

one_loss() { # FILE
    "$any_python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["loss"])' "$1"
}

same_loss() { # N PORT STRATEGY [OPTION...]
    local n=$1 port=$2 r failed=0 alone together summary=$results/ranks-$2.json most=1e-3 precision=${precision-fp32}
    [ "$precision" = fp32 ] || most=5e-3
    # A larger rate lets a rounding grow a thousand-fold in so many steps.
    local train=(fit --model mnist-cnn --device "$device" --precision "$precision" --data "$train_data" --verbose 0 --seed 5
        --global-batch-size 64 --steps-per-epoch 60 --epochs 1 --learning-rate 0.02)
    export NVIDIA_TF32_OVERRIDE=0 # in the step's own process
    [ -s "$results/alone-$precision.json" ] ||
        "$hpc_train" "${train[@]}" --strategy multi-worker-mirrored --summary-json "$results/alone-$precision.json" || return
    ranks "$n" "$port" "${train[@]}" --strategy "${@:3}" --summary-json "$summary"
    for ((r = 0; r < n; r++)); do wait "${pids[r]}" || failed=1; done
    cat "$results/rank-$port-"*.out
    ((failed == 0)) || return 1
    if [ "$3" = auto ] && ! grep -a '^strategy .* ms a step' "$results/rank-$port-0.out"; then return 1; fi # it has measured
    alone=$(one_loss "$results/alone-$precision.json")
    together=$(one_loss "$summary")
    say "= $n ranks, ${*:3}: loss $together, alone $alone"
    awk "BEGIN { d = $alone - $together; if (d < 0) d = -d; exit !(d < $most * $alone) }"
}

# All in fp16, which processors do not have.
in_fp16() {
    precision=fp16
    [ "$device" != cpu ] || precision=fp32
    same_loss "$@"
}

# A parameter server in the host's memory, and two workers on the GPU.
served() {
    servers=1
    same_loss 3 23700 parameter-server --ps-sync
}

# One of N ranks gets a signal in the middle of training: the others end within 30 s, with 69, and name it.
lost() { # N PORT SIGNAL
    local n=$1 port=$2 signal=$3 r code failed=0 start victim=$(($1 - 1)) tries
    ranks "$n" "$port" fit --model mnist-cnn --device "$device" --data "$train_data" --epochs 1000 --verbose 2 \
        --strategy multi-worker-mirrored
    for ((tries = 0; tries < 300; tries++)); do # until an epoch has been said, or some seconds have passed
        grep -aq -i 'epoch' "$results/rank-$port-0.out" && break
        kill -0 "${pids[0]}" 2>/dev/null || break
        sleep 0.1
    done
    sleep 2
    kill "-$signal" "${pids[victim]}"
    start=$(date +%s)
    for ((r = 0; r < victim; r++)); do
        while kill -0 "${pids[r]}" 2>/dev/null && (($(date +%s) - start < 40)); do sleep 0.2; done
        kill -KILL "${pids[r]}" 2>/dev/null && failed=1
        wait "${pids[r]}"
        code=$?
        ((code == 69)) || failed=1
        grep -aq "rank $victim .*lost" "$results/rank-$port-$r.out" || failed=1
    done
    say "= SIG$signal on rank $victim of $n: the others ended within $(($(date +%s) - start)) s (last exit code $code)"
    kill -KILL "${pids[victim]}" 2>/dev/null
    cat "$results/rank-$port-"*.out
    return $failed
}
