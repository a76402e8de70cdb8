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
like "$out" "validation: 2 pictures, 2 classes \\(cat, dog\\), from $work/set/Testing" "and with what it is validated"
like "$err" "warning: training: 1 picture in no class's folder is left out \\(the first: assets/" "what is left out is counted"
like "$err" "warning: training: 3 of the 3 pictures looked at are in colour and are turned grey" "grey is said"
like "$err" "warning: training: there are 2 classes, the model has 10" "and classes that the model has more"
unlike "$err" "VALIDATION PICTURES ARE" "the splits are not the same"
like "$(tr -d ' \n' <"$work/s.json")" '"classes":\["cat","dog"\]' "the summary has the names of the classes"
fit --data "$work/set/Training" --validation-data "$work/set/Training"
like "$err" "THE VALIDATION PICTURES ARE THE TRAINING PICTURES" "the same pictures for both are told loudly"
fit --data "$work/set/Training" --validation-data "$work/other"
is "$status" 0 "a validation folder without one of the classes"
fit --data "$work/other" --validation-data "$work/set/Testing"
is "$status" 65 "a validation folder with a class more is refused"
like "$err" "the class cat is none of the 1 classes of $work/other" "and which"
capture limit 60 "$top_builddir/hpc-train" fit --model mnist-cnn --data "$work/set"
is "$status" 65 "pictures of another size are refused"
like "$err" "samples are 7x9x3 \\(turned grey: 7x9x1\\), the model's input is 28x28" "as what they are"

# ---- fewer validation pictures than ranks ----
picture few/train/{a,b} few/val/a
capture limit 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$top_builddir/hpc-train" fit \
    --model mnist-cnn --resize 28x28 --verbose 2 --strategy hybrid --data "$work/few" --validation-data "$work/few"
is "$status" 0 "one validation picture on two ranks"
is "$(grep -c '^training: 2 pictures' <<<"$out") $(grep -c 'classes, the model has 10' <<<"$err")" "1 1" "is trained on, and said once"

# ---- data info: what cannot be read is not left out ----
info "$work/set"
is "$status" 0 "data info of a good one"
like "$out" "from: *$work/set/Testing" "and from where each split is"
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
    like "$err" "$work/read/train/b: Permission denied" "is named"
else
    skip "a class's folder that cannot be read" "an ordinary user cannot run the program here"
fi
chmod 755 "$work/read/train/b"
mkdir "$work/idx"
printf '\0\0\010\03\0\0\0\01\0\0\0\01\0\0\0\01x' | tee "$work/idx/train-images-idx3-ubyte" >"$work/idx/t10k-images-idx3-ubyte"
printf '\0\0\010\01\0\0\0\01\01' >"$work/idx/t10k-labels-idx1-ubyte"
info "$work/idx"
is "$status" 66 "labels that are missing"
like "$err" "$work/idx/train-labels-idx1-ubyte" "are named"
cp "$work/idx/t10k-labels-idx1-ubyte" "$work/idx/train-labels-idx1-ubyte"
info "$work/idx"
is "$status" 0 "and are read when they are there"
done_testing
