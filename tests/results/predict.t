#!/bin/bash
# predict.t: hpc-train predict writes each picture once, in the data's order, the same bytes on any number of ranks and threads and
# with any batch; pictures without classes; what cannot be read or written is an error.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
train=$hpc_train
limit 120 "$train" fit --model mnist-cnn --data "$work/pictures" --epochs 2 --learning-rate 0.05 --verbose 0 --save-weights cnn.safetensors
fit --save-weights convnet.safetensors >/dev/null
predict() { limit 120 "$train" predict --model mnist-cnn --weights cnn.safetensors "$@"; }
ranks() { # NUMBER OPTION…
    limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$1" "$train" predict --model mnist-cnn \
        --weights cnn.safetensors "${@:2}"
}
same() { is "$(cmp "$1" "$2" 2>&1)" "" "$3"; }

# ---- one rank ----
capture predict --data pictures --output one.csv
is "$status $err" "0 " "predicts an IDX data set"
is "$out" "one.csv: 64 predictions" "and says how many pictures"
is "$(head -n 1 one.csv)" "index,class,probability" "the first row names the columns"
is "$(tail -n +2 one.csv | cut -d, -f1 | tr '\n' ' ')" "$(seq -s ' ' 0 63) " "each picture once, in order"
is "$(tail -n +2 one.csv | grep -cE '^[0-9]+,[0-9],(1|0\.[0-9]+|[0-9.]+e-[0-9]+)$')" 64 "class and probability of each"
if command -v python3 >/dev/null; then
    right=$(tail -c 64 pictures/t10k-labels-idx1-ubyte | od -An -v -tu1 -w1 | tr -d ' ' |
        paste - <(tail -n +2 one.csv | cut -d, -f2) | awk '$1 == $2' | wc -l)
    accuracy=$(limit 60 "$train" evaluate --model mnist-cnn --weights cnn.safetensors --data pictures | grep -oE 'accuracy: [0-9.]+')
    is "accuracy: $(printf %.4f "$(awk "BEGIN { print $right / 64 }")")" "$accuracy" "as many are right as evaluate counts"
fi
"$train" export --model mnist-cnn --weights cnn.safetensors --output trained.json >/dev/null
sed 's/"trainable": *true/"trainable": false/g' trained.json >frozen.json
limit 120 "$train" predict --model frozen.json --weights cnn.safetensors --data pictures --output frozen.csv >/dev/null
like "$(grep -o '"trainable": *false' frozen.json | wc -l)" "^[1-9]" "layers are frozen"
same one.csv frozen.csv "and predict the same"
predict --data pictures --top-k 3 --output top.jsonl >/dev/null
is "$(wc -l <top.jsonl)" 64 "an object per picture"
if command -v python3 >/dev/null; then
    is "$(python3 - <<'END'
import csv, json
rows = [json.loads(line) for line in open("top.jsonl")]
best = list(csv.DictReader(open("one.csv")))
for i, row in enumerate(rows):
    top = row["top"]
    assert row["index"] == i and len(top) == 3, row
    assert top[0] == {"class": row["class"], "probability": row["probability"]}, row
    assert [t["probability"] for t in top] == sorted((t["probability"] for t in top), reverse=True), row
    assert len({t["class"] for t in top}) == 3 and 0 < sum(t["probability"] for t in top) < 1.00001, row
    assert (str(row["class"]), row["probability"]) == (best[i]["class"], float(best[i]["probability"])), row
print("good")
END
    )" good "the best three of each, the best first"
fi
capture predict --data pictures --top-k 2
is "$status $(head -n 1 <<<"$out" | tr -s ' ')" "0 index class probability class probability" "without --output a table"
is "$(wc -l <<<"$out")" 65 "with a row per picture"
is "$(awk 'NR > 1 { print $2 "," $3 }' <<<"$out")" "$(tail -n +2 one.csv | cut -d, -f2-)" "of the same numbers"

# ---- the same bytes ----
# Of all classes: kernels that depend on the batch or on threads change the last bits of most numbers, and so some digits.
predict --data pictures --top-k 10 --output all.csv >/dev/null
for threads in 2 3 5; do
    OMP_NUM_THREADS=$threads predict --data pictures --top-k 10 --output threads.csv >/dev/null
    same all.csv threads.csv "$threads threads: the same bytes"
done
for batch in 1 7 8 13 1000; do
    OMP_NUM_THREADS=2 predict --data pictures --batch-size $batch --top-k 10 --output batch.csv >/dev/null
    same all.csv batch.csv "--batch-size $batch: the same bytes"
done
if command -v mpirun >/dev/null; then
    for n in 2 3 4; do
        ranks $n --data pictures --batch-size $((n + 4)) --top-k 10 --output ranks.csv >out
        same all.csv ranks.csv "$n ranks: the same bytes"
        is "$(cat out)" "ranks.csv: 64 predictions" "and one line"
    done
    ranks 4 --data synthetic:13 --top-k 10 --output few.csv >out
    predict --data synthetic:13 --top-k 10 --output few1.csv >out
    same few.csv few1.csv "more ranks than groups of pictures: the same bytes"
    is "$(wc -l <few.csv)" 14 "and all of them"
    # Each rank reads for itself.
    cp cnn.safetensors other.safetensors
    printf 'x' | dd of=other.safetensors bs=1 seek=$(($(stat -c %s cnn.safetensors) - 1)) conv=notrunc status=none
    mkdir a b c
    cp "$top_srcdir/tests/fuzz/corpus/picture/png" a/1.png
    cp a/1.png a/2.png
    cp a/1.png b/1.png
    cp a/1.png c/1.png
    cp a/1.png c/3.png
    apart() { # DATA WEIGHTS: rank 1's; in rank 0's hands are a/ and cnn.safetensors
        # shellcheck disable=SC2016 # for the rank's shell
        capture limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 bash -c '
            [ "$OMPI_COMM_WORLD_RANK" != 0 ] || set -- "$1" a cnn.safetensors
            exec "$1" predict --model mnist-cnn --resize 28x28 --weights "$3" --data "$2" --output apart.csv' rank "$train" "$1" "$2"
    }
    apart b cnn.safetensors
    like "$status $err" "^65 .*data, samples is 1 on rank 1 .* 2 on rank 0" "a rank that sees fewer pictures is an error"
    apart c cnn.safetensors
    like "$status $err" "^65 .*data, hash of file names .* on rank 1 .* on rank 0" "or other ones"
    apart a other.safetensors
    like "$status $err" "^65 .*hash of the weights is .* on rank 1 .* on rank 0" "or has other weights"
    is "$(ls apart.csv 2>&1 | grep -c 'No such')" 1 "nothing is written then"
    apart a cnn.safetensors
    is "$status $(wc -l <apart.csv)" "0 3" "the same ones are none"
    ranks 2 --data pictures >two
    predict --data pictures >alone
    same two alone "the table, too"
else
    skip "several ranks" "there is no mpirun"
fi

# ---- pictures ----
png=$top_srcdir/tests/fuzz/corpus/picture/png
grey() { limit 60 "$train" predict --model mnist-cnn --weights cnn.safetensors --resize 28x28 "$@" 2>&1; }
mkdir -p loose/b flat split/train/cat split/test
cp "$png" loose/2.png
cp "$png" loose/b/1.png
cp "$png" 'flat/a, "b".png'
cp "$png" flat/c.png
cp "$png" split/train/cat/1.png
cp "$png" split/test/2.png
names() { cut -d, -f1 "$1" | tail -n +2 | tr '\n' ' '; }
grey --data loose --output l.csv >out
is "$(names l.csv)" "2.png b/1.png " "pictures in no folder of a class, and in one"
grey --data flat --output f.csv >out
is "$(sed -n 2p f.csv | cut -c 1-15)" '"a, ""b"".png",' "a name with a comma is quoted"
grey --data flat --output f.jsonl >out
like "$(head -n 1 f.jsonl)" '^\{"file": "a, \\"b\\".png", "class": [0-9], "probability": ' "and in JSON"
grey --data split --output s.csv >out
is "$(names s.csv)" "test/2.png " "of training and test pictures those to be tested"
grey --data loose/2.png --output p.csv >out
is "$(names p.csv)" "2.png " "one picture"
is "$(tail -n +2 p.csv)" "$(sed -n 2p l.csv)" "with the numbers that it has among others"
tar -cf loose.tar -C loose .
grey --data loose.tar --output t.csv >out
same l.csv t.csv "an archive of them"
(cd loose && limit 60 "$train" predict --model mnist-cnn --weights ../cnn.safetensors --resize 28x28 --data 2.png --output ../here.csv >/dev/null)
same p.csv here.csv "a picture of the working folder"
# Weights that know the names of their classes.
limit 120 "$train" fit --model mnist-cnn --resize 28x28 --classes 2 --data split/train --epochs 1 --verbose 0 --save-weights named.safetensors 2>/dev/null
limit 60 "$train" predict --model mnist-cnn --resize 28x28 --classes 2 --weights named.safetensors --data flat/c.png --top-k 2 --output n.csv >/dev/null
like "$(tail -n 1 n.csv)" '^c.png,(cat,[0-9.e-]+,1|1,[0-9.e-]+,cat),' "names of classes, and numbers of those without"
printf 'no picture' >flat/d.png
capture grey --data flat --output bad.csv
like "$status $out" "^65 .*flat/d.png" "a picture that cannot be decoded is named"
is "$(ls bad.csv 2>&1 | grep -c 'No such')" 1 "and nothing is written"

# ---- errors ----
# A NaN in the first convolution, whose ReLU makes 0 of it: all outputs are finite.
cp cnn.safetensors nan.safetensors
printf '\0\0\300\177' | dd of=nan.safetensors bs=1 seek=$((8 + $(od -An -tu8 -N8 cnn.safetensors))) conv=notrunc status=none
capture limit 60 "$train" predict --model mnist-cnn --weights nan.safetensors --allow-nan --data pictures --output nan.csv
like "$status $err" "^65 .*the predictions are meaningless: in the weights, .*kernel" "weights that are not finite predict nothing"
is "$(ls nan.csv 2>&1 | grep -c 'No such')" 1 "and nothing is written"
capture predict --data pictures --output "$work/none/p.csv"
like "$status $err" "^74 .*none/p.csv" "a folder that is not there is found before anything is computed"
ln -s /dev/full full.csv
capture predict --data pictures --output full.csv
like "$status $err" "^74 .*full.csv" "a full disk"
predict --data pictures >/dev/full 2>err
is "$? $(cat err)" "74 hpc-train: standard output cannot be written" "a table that cannot be printed"
cp one.csv before.csv
(ulimit -f 1; predict --data pictures --top-k 10 --output one.csv >/dev/null 2>err)
is $? 74 "a file that may not be so large"
same one.csv before.csv "the earlier file stays"
capture predict --data pictures --output p.txt
like "$status $err" "^64 .*p.txt.*.csv or .jsonl" "another kind of file"
capture predict --data pictures --top-k 11 --output p.csv
like "$status $err" "^64 .*--top-k is 11, the model has 10 classes" "more classes than there are"
capture predict --data pictures/t10k-images-idx3-ubyte --output p.csv
like "$status" "^66$" "what is no picture"
capture limit 60 "$train" fit --model mnist-cnn --data loose/2.png
like "$status $err" "^66 .*2.png is one picture, and a data set is a folder" "one picture is nothing to train on"
capture limit 60 "$train" predict --model mnist-cnn --data pictures
like "$status $err" "^64 .*--weights is missing" "predictions need weights"
cp pictures/t10k-images-idx3-ubyte in.csv
capture predict --data in.csv --output in.csv
like "$status $err" "^64 .*would replace what --data reads" "the data are not replaced"
done_testing
