#!/bin/bash
# data.t: what hpc-train says of the data it is given, before it trains on them.
# shellcheck disable=SC2154

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
work=$(mktemp -d /tmp/hpc-train-data.XXXXXX)
at_exit "chmod -R u+rwx '$work'; rm -rf '$work'"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0
picture() { # FOLDER…: one colour picture in each
    local folder
    for folder; do
        mkdir -p "$work/$folder"
        cp "$top_srcdir/tests/fuzz/corpus/picture/png" "$work/$folder/$((++pictures)).png"
    done
}
pictures=0
info() { capture limit 60 "$top_builddir/hpc-train" data info "$@"; }
fit() { capture limit 120 "$top_builddir/hpc-train" fit --model mnist-cnn --resize 28x28 --batch-size 4 --verbose 2 "$@"; }

# ---- fit: what it trains on ----
picture set/Training/{cat,cat,dog} set/Testing/{cat,dog} set/assets other/dog other/dog
fit --data "$work/set" --validation-data "$work/set" --summary-json "$work/s.json"
is "$status" 0 "Training and Testing are trained on"
like "$out" "training: 3 pictures, 2 classes \\(cat, dog\\), from $work/set/Training" "a line says on what"
like "$out" "validation: 2 pictures, 2 classes \\(cat, dog\\), from $work/set/Testing" "and the validation data"
like "$err" "warning: training: 1 picture in no class's folder is left out \\(the first: assets/" "ignored pictures are counted"
like "$err" "warning: training: 3 of the 3 pictures looked at are in colour and are turned grey" "conversion to grey is reported"
like "$err" "warning: training: there are 2 classes, the model has 10" "fewer classes than model outputs are reported"
unlike "$err" "VALIDATION PICTURES ARE" "the splits are not the same"
like "$(tr -d ' \n' <"$work/s.json")" '"classes":\["cat","dog"\]' "the summary has the names of the classes"
fit --data "$work/set/Training" --validation-data "$work/set/Training"
like "$err" "THE VALIDATION PICTURES ARE THE TRAINING PICTURES" "identical training and validation pictures: a warning"
fit --data "$work/set/Training" --validation-data "$work/other"
is "$status" 0 "a validation folder without one of the classes"
fit --data "$work/other" --validation-data "$work/set/Testing"
is "$status" 65 "a validation folder with a class more is refused"
like "$err" "the class cat is none of the 1 classes of $work/other" "the error names the class"
capture limit 60 "$top_builddir/hpc-train" fit --model mnist-cnn --data "$work/set"
is "$status" 65 "pictures of another size are refused"
like "$err" "samples are 7x9x3 \\(turned grey: 7x9x1\\), the model's input is 28x28" "the error has the samples' shape"

# ---- weights remember the names of their classes ----
# All pictures are one, and most are cats: what is trained takes each for a cat.
picture three/train/{ant,bee,cat,cat,cat,cat,cat,cat} three/test/{ant,bee,cat} part/test/{bee,cat} part/train/{bee,cat} shift/test/{ant,dog}
for end in safetensors weights.h5; do
    fit --classes 3 --data "$work/three" --epochs 8 --save-weights "$work/three.$end"
    is "$status" 0 "weights as $end"
    evaluate() { capture limit 60 "$top_builddir/hpc-train" evaluate --model mnist-cnn --resize 28x28 --classes 3 --weights "$work/three.$end" --data "$1"; }
    evaluate "$work/three"
    like "$out" "accuracy: 0.3333" "accuracy of one class of three"
    evaluate "$work/part"
    like "$status $out" "^0 .*accuracy: 0.5000" "and of two, numbered like the weights' classes"
    evaluate "$work/shift"
    is "$status" 65 "a class that the weights were not trained for"
    like "$err" "$work/shift/test: the class dog is none of the 3 classes of the weights" "the error names the class"
done
fit --classes 3 --data "$work/part" --weights "$work/three.safetensors"
is "$status" 0 "training continues with other classes"
like "$err" "warning: class 0 is bee in the training data, but ant in the weights that training starts from" "with a warning"
for strategy in multi-worker-mirrored hybrid pipeline "local-sgd --local-steps 2 --allow-lossy" \
    "central-storage --replicas 2" "mirrored --replicas 2"; do
    ranks=2
    [[ $strategy != *--replicas* ]] || ranks=1
    rm -f "$work/w.safetensors"
    # shellcheck disable=SC2086 # several words
    capture limit 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n $ranks "$top_builddir/hpc-train" fit --classes 3 \
        --model mnist-cnn --resize 28x28 --batch-size 2 --verbose 0 --data "$work/three" --save-weights "$work/w.safetensors" "${buckets[@]}" --strategy $strategy
    like "$(head -c 200 "$work/w.safetensors" | tr -d '\0\\')" '"class_names":"\["ant","bee","cat"\]"' "$strategy saves the class names, too"
done

# ---- fewer validation pictures than ranks ----
picture few/train/{a,b} few/val/a
capture limit 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$top_builddir/hpc-train" fit \
    --model mnist-cnn --resize 28x28 --verbose 2 --strategy hybrid --data "$work/few" --validation-data "$work/few"
is "$status" 0 "one validation picture for two ranks"
is "$(grep -c '^training: 2 pictures' <<<"$out") $(grep -c 'classes, the model has 10' <<<"$err")" "1 1" "is trained on, and said once"

# ---- data info: what cannot be read is not left out ----
info "$work/set"
is "$status" 0 "data info of a good one"
like "$out" "from: *$work/set/Testing" "and the source of each split"
picture sizes/a sizes/b
head -c 100 "$top_srcdir/tests/fuzz/corpus/picture/png" >"$work/sizes/b/cut.png"
cp "$top_srcdir/tests/fuzz/corpus/picture/png_16" "$work/sizes/a/"
mv "$work/sizes/a/png_16" "$work/sizes/a/other.png"
info "$work/sizes"
is "$status" 65 "a damaged picture among several sizes, which would be decoded in training"
like "$err" "$work/sizes/b/cut.png: it is damaged" "the error names the file"
picture read/train/{a,b} read/test/a
chmod 0 "$work/read/train/b"
if [ "$(id -u)" != 0 ]; then
    info "$work/read"
elif command -v setpriv >/dev/null && [ -x "$(readlink -f "$top_builddir/hpc-train")" ]; then
    chmod 755 "$work"
    capture limit 60 setpriv --reuid=65534 --clear-groups "$top_builddir/hpc-train" data info "$work/read"
fi
if [ "$(id -u)" != 0 ] || [ "$status" = 66 ]; then
    is "$status" 66 "a class's folder that cannot be read"
    like "$err" "$work/read/train/b: Permission denied" "the error names the folder"
else
    skip "a class's folder that cannot be read" "an ordinary user cannot run the program here"
fi
chmod 755 "$work/read/train/b"
mkdir "$work/idx"
printf '\0\0\010\03\0\0\0\01\0\0\0\01\0\0\0\01x' | tee "$work/idx/train-images-idx3-ubyte" >"$work/idx/t10k-images-idx3-ubyte"
printf '\0\0\010\01\0\0\0\01\01' >"$work/idx/t10k-labels-idx1-ubyte"
info "$work/idx"
is "$status" 66 "labels that are missing"
like "$err" "$work/idx/train-labels-idx1-ubyte" "the error names the missing labels"
cp "$work/idx/t10k-labels-idx1-ubyte" "$work/idx/train-labels-idx1-ubyte"
info "$work/idx"
is "$status" 0 "the labels are read when they exist"
done_testing
