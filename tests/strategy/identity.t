#!/bin/bash
# identity.t: what a run is: ranks with other options, models, weights or data are refused before step 1; so is the checkpoint of
# another run; evaluate takes from weights what they were trained with.
# shellcheck disable=SC2154

# shellcheck source=tests/build/lib.sh
. "${top_srcdir:?run this with make check}/tests/build/lib.sh"
command -v mpirun >/dev/null || skip_all "there is no mpirun"
work=$(mktemp -d /tmp/hpc-train-identity.XXXXXX)
at_exit "rm -rf '$work'"
cd "$work" || exit
use_key "$work/key"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0 OMPI_MCA_btl=${OMPI_MCA_btl-self,vader}

# ---- nine pictures of three classes, and a model ----
mkdir -p data/train/{cat,dog,emu}
i=0
for seed in jpeg png jpeg_grey png_palette png_grey jpeg_progressive png_alpha jpeg_cmyk png_1; do
    classes=(cat dog emu)
    cp "$top_srcdir/tests/fuzz/corpus/picture/$seed" "data/train/${classes[i % 3]}/$i.${seed%%_*}"
    i=$((i + 1))
done
cp -r data/train data/val
model() { # NAME ACTIVATION EPSILON POOL
    echo '{"class_name":"Sequential","config":{"layers":[{"class_name":"InputLayer","config":{"batch_shape":[null,8,8,3]}},
        {"class_name":"Conv2D","config":{"name":"conv","filters":4,"kernel_size":3,"activation":"'"$2"'"}},
        {"class_name":"BatchNormalization","config":{"name":"norm","epsilon":'"$3"'}},
        {"class_name":"'"$4"'Pooling2D","config":{"name":"pool","pool_size":2}},
        {"class_name":"Flatten","config":{"name":"flat"}},
        {"class_name":"Dense","config":{"name":"head","units":3,"activation":"softmax"}}]}}' >"$1.json"
}
model m relu 0.001 Max
model tanh tanh 0.001 Max
model epsilon relu 0.1 Max
model pool relu 0.001 Average
same=(--model m.json --data data --resize 8x8 --epochs 2 --batch-size 2 --verbose 2)

# ---- ranks ----
# ranks SCRIPT: two of them, each by bash with its number in $R
ranks() {
    # shellcheck disable=SC2016
    capture limit 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 env hpc_train="$hpc_train" \
        bash -c 'R=$OMPI_COMM_WORLD_RANK; fit() { exec "$hpc_train" fit --strategy multi-worker-mirrored "$@"; }; '"$1"
}
# disagree STATUS WORDS SCRIPT: rank 0 says it, and no step is trained
disagree() {
    ranks "$3"
    like "$status $err" "^$1 .*ranks disagree: $2 .*on rank 1 .*on rank 0 " "$3" || diag "$out" "$err"
    [[ $out != *Epoch* && $(grep -c 'ranks disagree' <<<"$err") = 1 ]] || { ok 1 "before step 1, and once: $3"; diag "$out" "$err"; }
}
ranks "fit ${same[*]}"
is "$status" 0 "two ranks that agree" || diag "$err"
ranks "fit ${same[*]} --log-dir log\$R --device cpu --verbose \$R"
is "$status" 0 "each with a folder of its own for logs" || diag "$err"
while read -r code words option <&3; do
    disagree "$code" "$words" "[ \$R = 0 ] || more='$option'; fit ${same[*]} \$more"
done 3<<'END'
78 --seed.is.7 --seed 7
78 --learning-rate.is.0.5 --lr 0.5
78 --epochs.is.3 --epochs 3
78 --batch-size.is.3 --batch-size 3
78 --batch-size.is.auto --batch-size auto
78 --steps-per-epoch.is.1 --steps-per-epoch 1
78 --optimizer.is.adam --optimizer adam
78 --schedule.is.cosine --schedule cosine
78 --scale.is.symmetric --scale symmetric
78 --augment.is.flip --augment flip
78 --label-smoothing.is.0.1 --label-smoothing 0.1
78 --freeze.is.conv --freeze conv
78 --class-weight.is.auto --class-weight auto
78 --precision.is.bf16 --precision bf16
78 --gradient-accumulation.is.2 --gradient-accumulation 2
78 --validation-data --validation-data data
78 --checkpoint-dir --checkpoint-dir ck
78 --save-weights --save-weights w.safetensors
78 --early-stopping --early-stopping loss
78 layers,.conv,.activation.is.tanh --model tanh.json
78 layers,.norm,.epsilon.is.0.1 --model epsilon.json
78 layers,.pool,.class.is.AveragePooling2D --model pool.json
END
# differing WORDS COMMAND: rank 1 has changed its copy of the data
differing() {
    disagree 65 "$1" "rm -rf data\$R; cp -r data data\$R; [ \$R = 0 ] || (cd data1/train; $2); fit ${same[*]} --data data\$R"
}
differing "class names, number 0 is ape" "mv emu ape"
differing "training samples is 8" "rm cat/0.jpeg"
differing "training data, hash of labels" "mv cat/0.jpeg dog"
differing "training data, hash of file names" "mv cat/0.jpeg cat/1.jpeg"
differing "training data, hash of some pictures" "printf x | dd of=cat/0.jpeg seek=\$((\$(stat -c %s cat/0.jpeg) - 3)) bs=1 conv=notrunc status=none"
"$hpc_train" fit "${same[@]}" --save-weights a.safetensors >/dev/null 2>&1
"$hpc_train" fit "${same[@]}" --seed 3 --save-weights b.safetensors >/dev/null 2>&1
for command in evaluate "predict --output p.csv"; do
    disagree 65 "hash of the weights" "[ \$R = 0 ] && W=a || W=b; \"\$hpc_train\" $command --model m.json --data data --resize 8x8 --weights \$W.safetensors"
    disagree 65 "data, samples is 8" "rm -rf data\$R; cp -r data data\$R; [ \$R = 0 ] || rm data1/val/cat/0.jpeg; \"\$hpc_train\" $command --model m.json --data data\$R --resize 8x8 --weights a.safetensors"
done
disagree 78 "--steps is 4" "exec \"\$hpc_train\" bench --model m.json --batch-size 2 --steps \$((3 + R))"

# ---- checkpoints ----
train() { limit 60 "$hpc_train" fit "${same[@]}" --optimizer adam --checkpoint-dir ck "$@"; }
train --verbose 0 >/dev/null 2>&1
cp -r ck made
# refused WORDS OPTION…: a third epoch
refused() {
    rm -rf ck && cp -r made ck
    capture train --epochs 3 "${@:2}"
    like "$status $err" "^78 .*ck/step-[0-9]* is of a run with $1" "another run: $1" || diag "$out" "$err"
    is "$(diff -r ck made | grep -v '/lock')" "" "its checkpoint stays" || ls -R ck
}
continues() { # WHAT OPTION…
    rm -rf ck && cp -r made ck
    capture train --epochs 3 "${@:2}"
    like "$status $out" "^0 .*continues ck/step-" "goes on: $1" || diag "$out" "$err"
}
refused "layers, conv, activation relu, this one has tanh" --model tanh.json
refused "layers, norm, epsilon 0.001, this one has 0.1" --model epsilon.json
refused "layers, pool, class MaxPooling2D" --model pool.json
refused "scale of images" --scale symmetric
refused "optimizer adam, this one has sgd" --optimizer sgd --lr 0.001
refused "seed 0, this one has 5" --seed 5
refused "epsilon" --epsilon 0.001
cp -r data renamed && mv renamed/train/emu renamed/train/ape
refused "class names, number 0 cat, this one has ape" --data renamed
cp -r data exchanged && cp data/train/cat/3.png exchanged/train/cat/0.jpeg
refused "training data, hash of file names" --data exchanged
rm -rf moved && cp -r data moved && tar -cf data.tar -C data train val
continues "more epochs"
continues "the data elsewhere" --data moved
continues "in an archive" --data data.tar
continues "with validation, logs and other outputs" --validation-data data --log-dir log --save-weights c.safetensors
continues "the model's file elsewhere" --model "$(cp m.json other.json; sed -i 's/{"class_name":"Sequential","config":{/&"name":"renamed",/' other.json; echo other.json)"
if "$hpc_train" bench --model m.json --steps 1 --precision bf16 >/dev/null 2>&1; then
    continues "another precision" --precision bf16
else
    ok 0 "another precision # SKIP this processor has no bf16"
fi
printf '2 0.002\n' >rates
continues "a file of learning rates" --learning-rate-file rates
rm -rf ck && cp -r made ck
# shellcheck disable=SC2016
ranks "exec \"\$hpc_train\" fit ${same[*]} --optimizer adam --checkpoint-dir ck --epochs 3 --batch-size 1 --strategy multi-worker-mirrored"
like "$status $out" "^0 .*continues ck/step-" "goes on: two ranks" || diag "$out" "$err"
# A checkpoint of the release before this description came (tests/fixtures/checkpoints/README).
rm -rf old && cp -r "$top_srcdir/tests/fixtures/checkpoints/before-identity" old && chmod -R u+w old
old=(--model "$top_srcdir/tests/fixtures/checkpoints/model.json" --data synthetic:40 --batch-size 8 --optimizer adam --checkpoint-dir old --verbose 2)
capture limit 60 "$hpc_train" fit "${old[@]}" --epochs 3 --seed 1
like "$status $err" "^78 .*is of a run with seed 0, this one has 1" "one of the release before is compared as then"
capture limit 60 "$hpc_train" fit "${old[@]}" --epochs 3
like "$status $out$err" "^0 .*continues old/step-.*did not note training data, layers" "and is continued, with a line" || diag "$out" "$err"

# ---- weights ----
symmetric() { limit 60 "$hpc_train" fit --model m.json --data data --resize 8x8 --epochs 4 --batch-size 3 --verbose 0 --scale symmetric "$@"; }
symmetric --save-weights s.safetensors --checkpoint-dir s.ck
"$hpc_train" checkpoint export s.ck e.safetensors >/dev/null
files=(s.safetensors s.ck e.safetensors)
# shellcheck disable=SC2154
if "$hpc_train" export --model m.json --weights s.safetensors --output s.weights.h5 >/dev/null 2>&1; then files+=(s.weights.h5); fi
evaluate() { limit 60 "$hpc_train" evaluate --model m.json --data data "$@"; }
capture evaluate --weights s.safetensors --scale symmetric --resize 8x8
right=$out
for weights in "${files[@]}"; do
    capture evaluate --weights "$weights"
    is "$status $out" "0 $right" "evaluate takes scaling and size from $weights" || diag "$err"
    like "$err" "$weights: --scale symmetric, as in training.*$weights: --resize 8x8, as in training" "and says so"
done
capture evaluate --weights s.safetensors --scale unit
like "$status $err" "^0 .*--scale unit is given, but it was trained with --scale symmetric" "an option that is given wins, and is said"
unlike "$out" "^$right$" "with another result"
limit 60 "$hpc_train" predict --model m.json --data data --weights s.safetensors --output p.csv >/dev/null 2>&1
limit 60 "$hpc_train" predict --model m.json --data data --weights s.safetensors --scale symmetric --resize 8x8 --output q.csv >/dev/null 2>&1
is "$(cmp p.csv q.csv 2>&1)" "" "so does predict"
limit 60 "$hpc_train" fit --model resnet50v2 --classes 3 --resize 32x32 --data data --epochs 1 --batch-size 3 --verbose 0 --save-weights r.safetensors
capture limit 100 "$hpc_train" evaluate --model resnet50v2 --data data --weights r.safetensors
like "$status $err" "^0 .*--resize 32x32, as in training" "a built-in model gets its size and classes"
rm -rf two && cp -r data two && rm -r two/val/cat two/train/cat
capture evaluate --weights s.safetensors --data two
like "$status $out" "^0 6 samples" "a part of the classes" || diag "$err"
limit 60 "$hpc_train" predict --model m.json --data two --weights s.safetensors --output part.csv >/dev/null 2>&1
like "$out" "accuracy: $(awk -v n="$(awk -F'[/,]' 'NR > 1 && $2 == $4' part.csv | wc -l)" 'BEGIN { printf "%.4f", n / 6 }')" "is counted by its names" || diag "$(cat part.csv)"
(cd data/train && find . -type f) | sed 's|^\./||' | LC_ALL=C sort >names
label() { awk -v order="$1" 'BEGIN { split(order, n, ","); print "file," order } { printf "%s", $0; for (i = 1; i <= 3; i++) printf ",%d", index($0, n[i] "/") == 1; print "" }' names; }
label cat,dog,emu >first.csv
label dog,emu,cat >permuted.csv
label cat,dog,yak >others.csv
labelled() { limit 60 "$hpc_train" fit --model m.json --data data/train --resize 8x8 --epochs 1 --batch-size 3 --verbose 2 --loss binary_crossentropy "$@"; }
sed -i 's/"softmax"/"sigmoid"/' m.json
labelled --labels first.csv --save-weights l.safetensors >/dev/null 2>&1
capture labelled --labels permuted.csv --weights l.safetensors
like "$status $err" "^65 .*permuted.csv: dog is number 0 here and 1 in the weights" "weights whose outputs are in another order" || diag "$out"
capture labelled --labels others.csv --weights l.safetensors
like "$status $err" "^0 .*output 2 is yak in the training data, but emu in the weights" "of other outputs: a line" || diag "$out"
capture labelled --labels first.csv --weights l.safetensors
unlike "$status $err" "in the weights" "of the same: none"
done_testing
