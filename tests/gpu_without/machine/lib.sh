# shellcheck shell=bash disable=SC2034,SC2154
# tests/gpu_without/machine/lib.sh - training on the emulated machine (tests/gpu_without/machine/machine.h), for the tests of this
# folder: small models and pictures. Sourced.

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/../../build/lib.sh"
[ -e "$top_builddir/tests/gpu_without/machine/.libs/hpctrain-cuda.so" ] || skip_all "the emulated GPU is not built: it needs CUDA and NCCL"
[ -z "${needs-}" ] || command -v "$needs" >/dev/null || skip_all "there is no $needs"
train=$hpc_train
own=$(mktemp -d)
at_exit "rm -rf '$own'"
use_key "$own/key"
steps=(--model mnist-convnet --data synthetic:12 --batch-size 2 --verbose 2)
lines() { wc -l <<<"$1"; }

export HPC_TRAIN_MODULE_DIR=$top_builddir/tests/gpu_without/machine/.libs XDG_CACHE_HOME=$own/cache

# ---- models and pictures ----

cat >"$own/drops.json" <<'END'
{"class_name": "Sequential", "config": {"name": "drops", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28], "name": "input"}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Dense", "config": {"name": "first", "units": 16, "activation": "relu"}},
    {"class_name": "Dropout", "config": {"name": "drop", "rate": 0.5}},
    {"class_name": "Dense", "config": {"name": "second", "units": 10}}]}}
END
# Every random layer of images, as each draws anew in each step.
{
    sed 's/"drops"/"varies"/; s/28, 28\]/28, 28, 1]/; /"Flatten"/,$d' "$own/drops.json"
    cat <<'END'
    {"class_name": "RandomFlip", "config": {"name": "flip"}},
    {"class_name": "RandomCrop", "config": {"name": "crop", "height": 25, "width": 26}},
    {"class_name": "RandomRotation", "config": {"name": "turn", "factor": 0.2}},
    {"class_name": "RandomZoom", "config": {"name": "zoom", "height_factor": 0.5, "width_factor": [0.1, 0.5], "fill_mode": "wrap"}},
    {"class_name": "RandomTranslation", "config": {"name": "move", "height_factor": 0.3, "width_factor": 0.2, "fill_mode": "constant"}},
    {"class_name": "RandomContrast", "config": {"name": "contrast", "factor": 0.6, "value_range": [0, 1]}},
    {"class_name": "RandomBrightness", "config": {"name": "light", "factor": 0.4, "value_range": [0, 1]}},
END
    sed -n '/"Flatten"/,$p' "$own/drops.json"
} >"$own/varies.json"
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

# ---- runs ----

number() { sed -n "s/^ *\"$2\": \([0-9.e-]*\).*/\1/p" "$own/$1.json"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; print !(a > 0 && d < 2e-4 && d > -2e-4) }'; }
# fit_small NAME OPTION…: on one rank, or by `ranks`, by multi-worker-mirrored where nothing else is said
ranks=()
buckets=(--bucket-bytes 50000)
fit_small() {
    local strategy=()
    [[ ${#ranks[@]} = 0 || " $* " == *" --strategy "* || " $* " == *" --replicas "* ]] || strategy=(--strategy multi-worker-mirrored)
    rm -f "$own/account"
    capture "${ranks[@]}" "$train" fit --model "$own/tiny.json" --resize 28x28 --data "$own/small" --validation-data "$own/small" \
        --augment flip,crop:3 --global-batch-size 4 --epochs 2 --seed 3 --verbose 0 --summary-json "$own/$1.json" "${buckets[@]}" "${strategy[@]}" \
        "${@:2}"
    is "$status" 0 "$1" || diag "$err"
}
# replays: of each rank's recordings, without those that are made to see whether it can
replays() { grep -v " 0 replays" "$own/with-nccl" | sed 's/.*, //' | sort | uniq -c | xargs; }
fit_nccl() {
    rm -f "$own/with-nccl"
    fit_small "$@"
}
fit_small on-cpu --device cpu
export HPC_TRAIN_TEST_ACCOUNT=$own/account
# same_as NAME NAME [VALUES]: numbers of the second's summary are those of the first
same_as() {
    local value
    for value in ${3:-loss accuracy val_loss val_accuracy}; do
        ok "$(near "$(number "$1" "$value")" "$(number "$2" "$value")")" "$2: $value is that of $1 ($(number "$1" "$value"), $(number "$2" "$value"))"
    done
}
same_as_cpu() { same_as on-cpu "$1"; }
near_in_fp16() { # NAME NAME [LARGEST-DIFFERENCE]
    ok "$(awk -v a="$(number "$1" loss)" -v b="$(number "$2" loss)" -v most="${3-0.02}" 'BEGIN { d = a - b; print !(a > 0 && d < most && d > -most && d != 0) }')" \
        "$2 in fp16: near $1 ($(number "$1" loss), $(number "$2" loss))"
}
fit_small warm --device cuda # engines are chosen by waiting for them
