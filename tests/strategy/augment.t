#!/bin/bash
# augment.t: pictures that are rotated, zoomed and mixed, or changed by layers of the model, become the same on 1, 2 and
# 4 ranks, with replicas and in a run that continues; mixed ones need a loss that takes shares of classes.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
deep=(--augment "flip,crop:2,rotation:0.1,zoom:0.2,translation:0.1,contrast:0.3,rand-augment:2:0.4")
mixed=(--augment "rotation:0.1,mixup:0.4,cutmix:1")

# ---- ranks and strategies ----
reference --model mnist-convnet "${deep[@]}"
same_as_one 2 --model mnist-convnet "${deep[@]}"
same_as_one 4 --model mnist-convnet "${deep[@]}"
plain=$(losses_differ one start)
train 1 plain --model mnist-convnet "${from[@]}"
ok "$(awk -v d="$(losses_differ one plain)" 'BEGIN { print !(d > 1e-3) }')" "and they are not the pictures as they are" || diag "$plain"
reference --model mnist-convnet "${mixed[@]}" --label-smoothing 0.1 --top-k 3
smooth=(--label-smoothing 0.1 --top-k 3)
same_as_one 2 --model mnist-convnet "${mixed[@]}" "${smooth[@]}"
same_as_one 4 --model mnist-convnet "${mixed[@]}" "${smooth[@]}" --strategy hybrid
same_as_one 1 --model mnist-convnet "${mixed[@]}" "${smooth[@]}" --replicas 3
same_as_one 2 --model mnist-convnet "${mixed[@]}" "${smooth[@]}" --replicas 2

# ---- passes over all pictures: the last batch is short; validation pictures are as they are ----
length=(--validation-data "$work/pictures" --epochs 2) steps=14
reference --model mnist-convnet "${mixed[@]}"
same_as_one 2 --model mnist-convnet "${mixed[@]}"
val=$(field one val_loss)
ok "$(awk -v a="$val" -v b="$(field many val_loss)" 'BEGIN { print !((a - b) ^ 2 < 1e-8 * a * a) }')" "evaluation takes labels: the same loss"
capture "$top_builddir/hpc-train" evaluate --model mnist-convnet --data "$work/pictures" --weights "$work/one.safetensors" \
    --summary-json "$work/evaluated.json"
ok "$(awk -v a="$val" -v b="$(field evaluated loss)" 'BEGIN { print !(b > 0 && (a - b) ^ 2 < 1e-8 * a * a) }')" "evaluate has it, too" ||
    diag "$val, not $(field evaluated loss): $out $err"

# ---- factor 0 is no augmentation, to the bit ----
length=(--steps-per-epoch 5) steps=5
train 1 plain --model mnist-convnet --augment flip
train 1 zeros --model mnist-convnet --augment flip,rotation:0,zoom:0,translation:0,contrast:0,rand-augment:0:0.5,mixup:0,cutmix:0
ok "$(cmp "$work/plain.safetensors" "$work/zeros.safetensors" >&2; echo $?)" "factors of 0: the same weights as without" || diag "$(cat "$work/zeros.out")"

# ---- a run that continues ----
length=(--steps-per-epoch 4)
train 1 whole --model mnist-convnet "${mixed[@]}" --epochs 3
train 1 cut --model mnist-convnet "${mixed[@]}" --epochs 3 --checkpoint-dir "$work/ckpt" --checkpoint-every 5 --checkpoint-keep 9
ok $? "a run with checkpoints" || diag "$(cat "$work/cut.out")"
step=$(find "$work/ckpt" -mindepth 1 -maxdepth 1 -name 'step-*' | sort | head -n 1)
train 1 after --model mnist-convnet "${mixed[@]}" --epochs 3 --checkpoint-dir "$work/other" --resume "$step"
ok $? "continued in the middle of an epoch" || diag "$(cat "$work/after.out")"
ok "$(cmp "$work/whole.safetensors" "$work/after.safetensors" >&2; echo $?)" "the same weights as the run that was not cut"
train 1 other --model mnist-convnet --augment rotation:0.1,mixup:0.5,cutmix:1 --epochs 3 --checkpoint-dir "$work/other2" --resume "$step"
is "$?" 78 "another alpha: an error"
like "$(cat "$work/other.out")" "is of a run with alpha of mixup 0.40*[0-9]*, this one has 0.5" "that names it"

# ---- layers of the model that do so: RandomFlip, RandomRotation, RandomContrast ----
random=$top_srcdir/tests/strategy/random.json
length=(--epochs 2) steps=14
reference --model "$random"
same_as_one 2 --model "$random"
same_as_one 4 --model "$random"
length=(--steps-per-epoch 4)
train 1 whole --model "$random" --epochs 3
train 1 cut --model "$random" --epochs 3 --checkpoint-dir "$work/layers" --checkpoint-every 5 --checkpoint-keep 9
step=$(find "$work/layers" -mindepth 1 -maxdepth 1 -name 'step-*' | sort | head -n 1)
train 1 after --model "$random" --epochs 3 --checkpoint-dir "$work/other3" --resume "$step"
ok $? "a run with such layers is continued" || diag "$(cat "$work/after.out")"
ok "$(cmp "$work/whole.safetensors" "$work/after.safetensors" >&2; echo $?)" "with the same weights as the run that was not cut"

# ---- what cannot be ----
length=(--steps-per-epoch 1)
train 1 none --model mnist-convnet --augment mixup:0.2 --loss mean_squared_error
is "$?" 64 "mixup with another loss than a categorical cross-entropy is refused"
like "$(cat "$work/none.out")" "--augment mixup and cutmix need a categorical cross-entropy.*not mean_squared_error" "the error names both"
train 1 none --model mnist-convnet --augment cutmix:0.2 --loss categorical_focal_crossentropy
is "$?" 0 "a focal one takes rows of targets" || diag "$(cat "$work/none.out")"
train 2 none --model mnist-convnet --augment cutmix:0.2 --strategy pipeline
is "$?" 64 "pipeline stages take labels alone"
like "$(cat "$work/none.out")" "strategy pipeline takes labels, not rows of targets, which --augment mixup and cutmix make" "the error says so"
done_testing
