#!/bin/bash
# freeze.t: with frozen layers every strategy gives the losses and weights of one rank, sends what trained layers need, and
# changes no bit of the others; checkpoints of such runs, weights that fit in part, rates of layers.
# shellcheck disable=SC2154

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"

# bits_stay NAME PATTERN: the tensors of $work/NAME.safetensors whose names match are those that the run began with, others are not.
bits_stay() {
    ok "$(python3 - "$work/start.safetensors" "$work/$1.safetensors" "$2" <<'END'
import json, re, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    at = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:at])
    return {k: data[at + v["data_offsets"][0]:at + v["data_offsets"][1]] for k, v in header.items() if k != "__metadata__"}
first, last = tensors(sys.argv[1]), tensors(sys.argv[2])
stays = {k for k in first if first[k] == last[k]}
frozen = {k for k in first if re.match(sys.argv[3], k)}
print(int(not (frozen and frozen <= stays and not any(k.endswith("/kernel") for k in stays - frozen))))
END
[ $? = 0 ] || echo 1)" "$1: no bit of frozen layers has changed, all other kernels have"
}

# ---- the lower layers: most strategies have nothing to do for them; and some between others ----
base=(--freeze 'stem,block*') between=(--freeze 'block0_*,norm' --freeze hidden)
for layers in base between; do
    declare -n option=$layers
    [ $layers = base ] && names='(stem|block)' || names='(block0_|norm/|hidden)'
    run=(--model "$residual" --sync-batch-norm "${option[@]}")
    reference "${run[@]}"
    bits_stay one "$names"
    cases=("3 --strategy multi-worker-mirrored --bucket-bytes 4096" "2 --strategy hybrid" "2 --strategy mirrored --replicas 2")
    [ $layers = between ] || cases+=("1 --strategy central-storage --replicas 3"
        "2 --strategy multi-worker-mirrored --allow-lossy --compress powersgd:256 --compress-warmup 0")
    for case in "${cases[@]}"; do
        # shellcheck disable=SC2086 # several words
        same_as_one ${case%% *} "${run[@]}" ${case#* }
        bits_stay many "$names"
    done
    train 2 many "${run[@]}" --strategy local-sgd --allow-lossy --local-steps 3 --local-warmup-steps 0 "${from[@]}"
    ok $? "local-sgd" || diag "$(cat "$work/many.out")"
    bits_stay many "$names"
done
# Parts of frozen layers, and frozen layers before those in parts.
reference --model mnist-cnn --freeze dense
for form in rows columns; do
    same_as_one 3 --model mnist-cnn --freeze dense --strategy hybrid --hybrid-form $form
    bits_stay many 'dense/'
done
reference --model "$wide" --sync-batch-norm --freeze 'stem,block0_*,wide0_conv1,wide0_norm'
same_as_one 3 --model "$wide" --sync-batch-norm --freeze 'stem,block0_*,wide0_conv1,wide0_norm' --strategy hybrid --hybrid-form back
bits_stay many '(stem|block0_|wide0_conv1|wide0_norm/)'
# A frozen BatchNormalization has no statistics of its own: stages train as one rank does, with any number of micro-batches.
reference --model "$residual" --freeze 'stem,block*,norm' --optimizer adam
for ranks in 2 3; do
    same_as_one $ranks --model "$residual" --freeze 'stem,block*,norm' --optimizer adam --strategy pipeline --micro-batches 3
    bits_stay many '(stem|block|norm)'
done
reference --model "$residual" --freeze 'block0_conv,block0_norm,block1_norm,norm'
same_as_one 3 --model "$residual" --freeze 'block0_conv,block0_norm,block1_norm,norm' --strategy pipeline --micro-batches 3
bits_stay many '(block0_conv|block0_norm|block1_norm|norm/)'

# ---- bytes: those of the two Dense layers and the sums ----
train 2 many --model mnist-convnet --freeze 'conv*' --strategy multi-worker-mirrored
is "$(field many bytes_sent_per_step)" $((4 * (1024 * 10 + 16 + 6))) "without gradients of frozen layers"

# ---- histograms: there are no gradients of frozen layers to draw ----
train 1 many --model mnist-convnet --freeze 'conv*' --histogram-every 1
ok $? "with histograms" || diag "$(cat "$work/many.out")"
tags=$(cat "$work/many"/train/events.* | tr -c 'a-z0-9_/' '\n' | grep -E '^(conv2d|dense)/kernel/(gradient|histogram)$' | sort -u | paste -sd' ')
is "$tags" "conv2d/kernel/histogram dense/kernel/gradient dense/kernel/histogram" "gradients of trained layers only"

# ---- checkpoints ----
whole=(--model mnist-convnet --optimizer adam --freeze conv2d --strategy multi-worker-mirrored)
adam=("${whole[@]}" --checkpoint-dir "$work/checkpoints" --checkpoint-every epoch)
train 2 one "${whole[@]}" --epochs 2
ok $? "two epochs" || diag "$(cat "$work/one.out")"
train 2 half "${adam[@]}"
train 2 many "${adam[@]}" --epochs 2
ok $? "one, and another one from its checkpoint" || diag "$(cat "$work/many.out")"
is "$(cmp "$work/one.safetensors" "$work/many.safetensors" 2>&1)" "" "with the same weights"
cp "$work/one.safetensors" "$work/trained.safetensors"
for how in mirrored central-storage; do # each replica has the weights of frozen layers
    replicas=(--model mnist-convnet --optimizer adam --freeze conv2d --strategy "$how" --replicas 2)
    train 1 one "${replicas[@]}" --weights "$work/trained.safetensors" --epochs 2
    train 1 half "${replicas[@]}" --weights "$work/trained.safetensors" --checkpoint-dir "$work/checkpoints-$how"
    train 1 many "${replicas[@]}" --checkpoint-dir "$work/checkpoints-$how" --epochs 2
    ok $? "a checkpoint of $how, continued without --weights" || diag "$(cat "$work/many.out")"
    is "$(cmp "$work/one.safetensors" "$work/many.safetensors" 2>&1)" "" "has the weights of one run"
done
for other in "" "--freeze conv2d,conv2d_1"; do
    # shellcheck disable=SC2086
    train 1 many --model mnist-convnet --optimizer adam $other --checkpoint-dir "$work/checkpoints" --epochs 3
    is "$?" 78 "other frozen layers (${other:-none}) are refused"
    like "$(cat "$work/many.out")" "is of a run with frozen layers conv2d, this one has (none|conv2d,conv2d_1)" "with both lists"
done
train 1 many "${whole[@]}" --learning-rate-of dense=0.5 --checkpoint-dir "$work/checkpoints" --epochs 3
is "$?" 78 "other rates of layers, too"
like "$(cat "$work/many.out")" 'with learning rates of layers none, this one has dense=0.5' "with both"

# ---- weights that fit in part: rank 0 loads and says so, all have them ----
fits=(--model mnist-convnet --classes 12 --weights "$work/trained.safetensors")
train 2 many "${fits[@]}"
is "$?" 65 "a head of another shape is an error"
like "$(cat "$work/many.out")" 'tensor "dense/kernel" does not have the model.s shape 1024x12; fit --skip-mismatch loads the layers that fit' "which names the option"
train 1 alone "${fits[@]}" --skip-mismatch --freeze 'conv*'
train 2 many "${fits[@]}" --skip-mismatch --freeze 'conv*'
ok $? "with it the others are loaded" || diag "$(cat "$work/many.out")"
is "$(grep -c 'not loaded, with initial values: dense (kernel: another shape)' "$work/many.out")" 1 "what is not, is said once"
cp "$work/trained.safetensors" "$work/start.safetensors"
bits_stay many conv
differ=$(losses_differ alone many)
ok "$(awk -v d="$differ" 'BEGIN { print !(d != "" && d + 0 <= 1e-4) }')" "both ranks begin with the same weights (${differ:-?})"

# ---- refusals ----
refused() { # TEXT OPTION…
    local says=$1
    shift
    train 2 many --model mnist-convnet "$@"
    is "$?" 64 "refused: $*"
    is "$(grep -c '^hpc-train: ' "$work/many.out")" 1 "in one line"
    like "$(cat "$work/many.out")" "$says" "which says why"
}
refused "--freeze: no layer of model mnist-convnet matches 'cnv\\*'; there are: conv2d, max_pooling2d, conv2d_1" --freeze 'dense,cnv*'
refused "all layers with weights are frozen" --freeze '*'
refused "--learning-rate-of: no layer of model mnist-convnet matches 'cnv\\*'" --learning-rate-of 'cnv*=0.1'
refused "--learning-rate-of: 'conv\\*=0': to keep the weights of layers, give --freeze 'conv\\*'" --learning-rate-of 'conv*=0'
refused "--learning-rate-of: 'conv\\*' should be PATTERN=FACTOR" --learning-rate-of 'conv*'
refused "--learning-rate-of: .*from" --learning-rate-of 'conv*=-1'
done_testing
