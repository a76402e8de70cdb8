#!/bin/bash
# labels.t: --labels: a class or a number for each output of each picture, from a CSV file: what runs leave, what is continued, and
# what is refused.
# shellcheck disable=SC2154

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/../build/lib.sh"
work=$(mktemp -d /tmp/hpc-train-labels.XXXXXX)
at_exit "rm -rf '$work'"
cd "$work" || exit
train=$hpc_train
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0

# ---- pictures of different sizes, and models with three outputs ----
mkdir -p data/cat data/dog data/emu
i=0
for seed in jpeg png jpeg_grey png_palette png_grey jpeg_progressive png_alpha jpeg_cmyk png_1; do
    classes=(cat dog emu)
    cp "$top_srcdir/tests/fuzz/corpus/picture/$seed" "data/${classes[i % 3]}/$i.${seed%%_*}"
    i=$((i + 1))
done
mapfile -t names < <(cd data && find . -type f | sed 's|^\./||' | LC_ALL=C sort)
model() { # NAME ACTIVATION: of three outputs
    echo '{"class_name":"Sequential","config":{"layers":[{"class_name":"InputLayer","config":{"batch_shape":[null,8,8,3]}},
        {"class_name":"Flatten","config":{}},{"class_name":"Dense","config":{"units":6,"activation":"tanh"}},
        {"class_name":"Dense","config":{"units":3,"activation":"'"$2"'"}}]}}' >"$1.json"
}
model numbers linear
model several sigmoid
model classes softmax
table() { # HEADER AWK: a row for each picture; awk prints what follows the name, of its number n and its class c
    echo "$1"
    printf '%s\n' "${names[@]}" | awk '{ n = NR - 1; c = index("cde", substr($0, 1, 1)) - 1 } { printf "%s,", $0 } '"$2"
}
table file,x,y,z '{ print n / 4 "," (-n) "," c }' >numbers.csv
table file,a,b,c '{ print n % 2 "," (c == 1) "," (n > 4) }' >several.csv
table file,class '{ print substr("catdogemu", 3 * c + 1, 3) }' >classes.csv
table file,cat,dog,emu '{ print (c == 0) "," (c == 1) "," (c == 2) }' >one_hot.csv
fit() { # MODEL OPTION…
    limit 60 "$train" fit --model "$1.json" --data data --resize 8x8 --epochs 2 --batch-size 4 --learning-rate 0.05 --verbose 2 "${@:2}"
}
numbers() { fit numbers --labels numbers.csv --loss mean_squared_error "$@"; }
several() { fit several --labels several.csv --loss binary_crossentropy "$@"; }
refused() { # STATUS WORDS NAME COMMAND…
    capture "${@:4}"
    like "$status $err" "^$1 .*$2" "$3"
}

# ---- what a run leaves ----
capture numbers --validation-data data --validation-labels numbers.csv --log-dir n --summary-json n.json --save-weights n.safetensors
like "$status $out" '^0 training: 9 pictures, 3 outputs \(x, y, z\), from data, labels of numbers.csv' "numbers: what it trains on is said"
like "$out" 's/step - loss: [0-9.]+ - mae: [0-9.]+ - mse: [0-9.]+ - val_loss: [0-9.]+ - val_mae: [0-9.]+ - val_mse: [0-9.]+' "progress as Keras has it"
like "$err" 'THE VALIDATION PICTURES ARE THE TRAINING PICTURES' "the usual warnings"
is "$(head -n 1 n/history.csv)" "epoch,learning_rate,loss,mae,mse,val_loss,val_mae,val_mse" "history.csv has mae and mse"
like "$(tail -n 1 n/metrics.jsonl)" '"loss": [0-9.e+-]+, "mae": [0-9.e+-]+, "mse": [0-9.e+-]+}$' "so has metrics.jsonl"
like "$(tr -d '\n' <n.json)" '"accuracy": null.*"classes": \[ *"x", *"y", *"z" *\].*"mae": [0-9.]+.*"val_mse": [0-9.]+' "and the summary, with the columns' names"
like "$(<n/status.json)" '"metrics":[{]"mae":[0-9.e+-]+,"mse":[0-9.e+-]+,"val_mae":[0-9.e+-]+,"val_mse":[0-9.e+-]+[}]' "and status.json"
like "$(LC_ALL=C "$train" top n)" $'\nmae [0-9.e+-]+, mse [0-9.e+-]+\nval_loss [0-9.e+-]+, val_mae [0-9.e+-]+, val_mse [0-9.e+-]+\n' "top shows them"
is "$("$train" report n --format csv -o - | tail -n 1 | cut -d, -f 8-11)" "$(tail -n 1 n/history.csv | cut -d, -f 4,5,7,8)" "report has them with all digits"
like "$("$train" report n --format md -o -)" '[|] epoch [|] loss [|] mae [|] mse [|] val. loss [|] val. mae [|] val. mse [|]' "and in its table, without accuracy"
is "$(awk -F, 'NR > 1 { print $3 == $5 && $6 == $8 }' n/history.csv | sort -u)" 1 "the loss is mse"

# ---- mape, which is asked for ----
capture numbers --validation-data data --validation-labels numbers.csv --log-dir m --summary-json m.json --save-weights m.safetensors --metrics mape \
    --monitor val_mape --save-best m-best.safetensors
like "$status $out" '^0 .* - val_mse: [0-9.]+ - val_mape: [0-9.e+]+' "--metrics mape: progress has it, and it can be monitored" || diag "$err"
is "$(head -n 1 m/history.csv)" "epoch,learning_rate,loss,mae,mse,val_loss,val_mae,val_mse,val_mape" "history.csv has it"
is "$(cut -d, -f 1-8 m/history.csv)" "$(cat n/history.csv)" "and the rest as without it"
is "$(cmp m.safetensors n.safetensors 2>&1)" "" "so are the weights"
last=$(tail -n 1 m/history.csv | cut -d, -f 9)
ok "$(grep -ac epoch_mape m/validation/events* | grep -q '^[1-9]'; echo $?)" "the event file has it"
is "$(python3 -c 'import json; print("%.9g" % json.load(open("m.json"))["val_mape"], "val_classes" in json.load(open("m.json")))')" "$last False" "the summary has it"
like "$(<m/status.json)" '"val_mape":[0-9.e+]+' "status.json has it"
like "$(LC_ALL=C "$train" top m)" $'val_mse [0-9.e+-]+, val_mape [0-9.e+-]+\n' "top shows it"
is "$("$train" report m --format csv -o - | tail -n 1 | cut -d, -f 12)" "$last" "report has it"
like "$("$train" report m -o -)" ">mape by epoch</text>" "and draws it"
limit 60 "$train" predict --model numbers.json --weights m.safetensors --data data --resize 8x8 --output m.csv >/dev/null
is "$(python3 - "$last" <<'END'
import csv, sys
rows = [list(csv.reader(open(name)))[1:] for name in ("m.csv", "numbers.csv")]
outputs, targets = ({row[0]: [float(x) for x in row[-3:]] for row in r} for r in rows)
each = [100 * sum(abs(y - p) / max(abs(y), 1e-7) for y, p in zip(targets[name], outputs[name])) / 3 for name in targets]
print(abs(sum(each) / len(each) / float(sys.argv[1]) - 1) < 1e-3)
END
)" True "it is Keras' formula of the predictions"
capture limit 60 "$train" evaluate --model numbers.json --weights m.safetensors --data data --labels numbers.csv --resize 8x8 --metrics mape --summary-json mape.json
like "$status $out" "^0 .* - mse: [0-9.]+ - mape: [0-9.e+]+" "evaluate has it"
is "$(python3 -c 'import json; print("%.9g" % json.load(open("mape.json"))["mape"])')" "$last" "the same number"
refused 64 "metrics mape is of numbers" "--metrics mape with classes" fit classes --validation-data data --metrics mape
refused 64 "val_mape needs --metrics mape" "a monitor that was not asked for" numbers --validation-data data --validation-labels numbers.csv --monitor val_mape --save-best b.safetensors

capture several --log-dir s --save-weights s.safetensors
like "$status $out" '^0 .* - accuracy: [0-9.]+ - loss: ' "several classes: accuracy"
is "$(head -n 1 s/history.csv)" "epoch,accuracy,learning_rate,loss" "and in history.csv"
is "$(awk -F, 'NR > 1 { k = $2 * 27; print (k - int(k + 0.5)) ^ 2 < 1e-8 }' s/history.csv | sort -u)" 1 "a share of all outputs"

# ---- classes: the same as from folders, byte by byte ----
capture fit classes --log-dir c0
is "$status" 0 "classes from folders"
head -c -1 classes.csv | sed 's/^/\xef\xbb\xbf/;2,$s/^\xef\xbb\xbf//; s/$/\r/' >dos.csv
sed '2,$s/,\(.*\)/,\1,0.5/; 1s/$/,probability/' classes.csv >predicted.csv
for labels in classes one_hot dos predicted; do
    capture fit classes --labels $labels.csv --log-dir "c-$labels" --top-k 2 --class-weight auto
    is "$status" 0 "$labels.csv: works, with options of classes" || diag "$err"
    capture fit classes --labels $labels.csv --log-dir "c-$labels" --save-weights "c-$labels.safetensors"
    is "$(cmp c0/metrics.jsonl "c-$labels/metrics.jsonl" 2>&1)" "" "$labels.csv: the same steps as from folders of classes"
    like "$(head -c 500 "c-$labels.safetensors" | tr -d '\\\0')" 'class_names":"."cat","dog","emu"' "and the names of classes"
done
(cd data && tar cf ../data.tar -- *)
capture limit 60 "$train" fit --model classes.json --data data.tar --labels classes.csv --resize 8x8 --epochs 2 --batch-size 4 \
    --learning-rate 0.05 --log-dir tar --validation-data data --verbose 0
is "$status" 0 "an archive, and validation data in folders of classes" || diag "$err"
is "$(sed 1q tar/metrics.jsonl)" "$(sed 1q c0/metrics.jsonl)" "the archive's first step is the folder's"

# ---- checkpoints ----
capture numbers --epochs 4 --log-dir whole --save-weights whole.safetensors
capture numbers --epochs 2 --log-dir parts --checkpoint-dir ck --checkpoint-every epoch
is "$status" 0 "two epochs with checkpoints"
sed 's/-8/-9/' numbers.csv >other.csv
refused 78 "ck.* is of a run with training data, hash of labels " "other labels do not continue it" fit numbers --labels other.csv --loss mean_squared_error --epochs 4 --checkpoint-dir ck
capture numbers --epochs 4 --log-dir parts --checkpoint-dir ck --checkpoint-every epoch --save-weights parts.safetensors
is "$status $(cmp whole/history.csv parts/history.csv 2>&1)" "0 " "two more: the history of a whole run"
is "$(cmp whole.safetensors parts.safetensors 2>&1)" "" "and its weights, names included"

# ---- evaluate ----
evaluate() { limit 60 "$train" evaluate --model "$1.json" --data data --resize 8x8 --weights "${@:2}"; }
capture evaluate numbers n.safetensors --labels numbers.csv --summary-json e.json
like "$status $out" '^0 9 samples - loss: [0-9.]+ - mae: [0-9.]+ - mse: [0-9.]+$' "evaluate: loss, mae and mse"
val=$(tail -n 1 n/history.csv | cut -d, -f6)
like "$(cat e.json)" "\"mse\": ${val:0:6}" "those of the last validation"
capture evaluate several s.safetensors --labels several.csv
like "$status $out" '^0 9 samples - accuracy: [0-9.]+ - loss: ' "evaluate: accuracy"
capture evaluate numbers ck --labels numbers.csv
like "$status $out" '^0 .* mae: ' "of a folder of checkpoints"
limit 60 "$train" checkpoint export ck exported.safetensors >/dev/null
is "$(evaluate numbers exported.safetensors --labels numbers.csv)" "$out" "and of weights exported from it" 
refused 65 "not with classes: give the numbers with --labels" "without --labels it would be meaningless" evaluate numbers n.safetensors
sed '1s/z/w/' numbers.csv >renamed.csv
refused 65 "line 1, column 4: it is w, and z in the weights" "other columns" evaluate numbers n.safetensors --labels renamed.csv
refused 64 "metrics is for one class per picture" "--metrics" evaluate numbers n.safetensors --labels numbers.csv --metrics f1
refused 64 "confusion-matrix is for one class" "--confusion-matrix" evaluate numbers n.safetensors --labels numbers.csv --confusion-matrix m.csv
refused 64 "loss is for --labels" "--loss alone" evaluate numbers n.safetensors --loss huber
capture fit numbers --save-weights plain.safetensors
capture evaluate numbers plain.safetensors --labels numbers.csv --loss huber
like "$status $out" '^0 .* mae: ' "--loss for weights that do not name one"
cut -d, -f1-3 numbers.csv >few.csv
refused 65 "few.csv, line 1: .*a column label or class, or one for each of the model's 3 outputs" "without it they are of classes" \
    evaluate numbers plain.safetensors --labels few.csv

# ---- predict ----
predict() { limit 60 "$train" predict --model "$1.json" --data data --resize 8x8 --weights "${@:2}"; }
capture predict numbers n.safetensors --output p.csv
is "$status $(head -n 1 p.csv) $(wc -l <p.csv)" "0 file,x,y,z 10" "predict: a column for each output, a row for each picture"
is "$(tail -n +2 p.csv | cut -d, -f1)" "$(printf '%s\n' "${names[@]}")" "in order"
capture evaluate numbers n.safetensors --labels p.csv
like "$out" ' mse: 0\.0000' "what it writes can be read as labels"
capture predict numbers n.safetensors --output p.jsonl
like "$status $(head -n 1 p.jsonl)" '^0 \{"file": "cat/0.jpeg", "outputs": \{"x": [-0-9.e]+, "y": [-0-9.e]+, "z": [-0-9.e]+\}\}$' "also as lines of JSON"
capture predict several s.safetensors
like "$status $(head -n 1 <<<"$out" | tr -s ' ')" '^0 file a b c ?$' "a table without --output"
is "$(awk 'NR > 1 && !($2 > 0 && $2 < 1)' <<<"$out")" "" "of probabilities"
refused 64 "top-k is for classes" "--top-k" predict numbers n.safetensors --top-k 2
capture predict classes c-classes.safetensors --output p.csv
capture fit classes --labels p.csv
is "$status" 0 "a table of predicted classes can be read as labels" || diag "$err"

capture fit classes --data synthetic:12 --save-weights nameless.safetensors
predict classes nameless.safetensors --output p.csv >/dev/null
like "$(cut -d, -f2 p.csv | sort -u | tr '\n' ' ')" '^([012] )+class $' "weights without names: classes are numbers"
capture evaluate classes nameless.safetensors --labels p.csv
like "$status $out" '^0 .* accuracy: 1.0000' "which are read as such"

# ---- what is monitored ----
capture numbers --monitor mae --save-best best.safetensors --early-stopping mse:patience=1
is "$status" 0 "--monitor mae, --early-stopping mse" || diag "$err"
refused 64 "accuracy is of classes: with numbers as labels there are loss, mae, mse" "--monitor accuracy" numbers --monitor accuracy --save-best b.safetensors
refused 64 "mae is of numbers" "--monitor mae with classes" fit classes --monitor mae --save-best b.safetensors

# ---- what is refused ----
refused 64 "top-k is for one class per picture: --labels several.csv has a number for each of 3" "--top-k" several --top-k 2
refused 64 "class-weight is for one class" "--class-weight" several --class-weight auto
refused 64 "metrics is for one class" "--metrics" several --metrics auc --validation-data data --validation-labels several.csv
refused 64 "confusion-matrix is for one class" "--confusion-matrix" several --confusion-matrix m.csv --validation-data data --validation-labels several.csv
refused 64 "give their numbers with --validation-labels" "validation data without numbers" several --validation-data data
refused 64 "give their numbers with --labels" "numbers for the validation alone" fit several --loss binary_crossentropy --validation-data data --validation-labels several.csv
refused 65 "renamed.csv, line 1, column 4: it is w, and z in numbers.csv" "validation labels with other columns" numbers --validation-data data --validation-labels renamed.csv
refused 64 "validation-labels is for --validation-data" "--validation-labels alone" numbers --validation-labels numbers.csv
refused 64 "synthetic is synthetic, with labels of its own" "data that has labels" limit 60 "$train" fit --model classes.json --data synthetic --labels classes.csv
refused 66 "none.csv cannot be opened" "a file that is not there" fit classes --labels none.csv
refused 65 "numbers.csv, line 3, column 3 \(y\): -1 does not lie in 0 to 1" "numbers beyond 0 to 1 with a binary loss" fit several --labels numbers.csv --loss binary_crossentropy
refused 65 "columns are 1, and .*--loss binary_crossentropy" "several classes with a loss of one" fit classes --labels several.csv
refused 64 "save-weights.*labels" "labels are not overwritten" numbers --save-weights numbers.csv
use_key "$work/key"
refused 64 "not for --strategy parameter-server" "parameter servers" env HPC_TRAIN_CONFIG='{"version":1,"job":"7.0","cluster":{"ps":["127.0.0.1:9"],
    "worker":["127.0.0.1:10"]},"task":{"type":"worker","index":0},"rank":1,"local_rank":1,"node_rank":0,"nodes":[{"name":"here","tasks":2,"gpus":0}]}' \
    timeout 60 "$train" fit --model several.json --data data --labels several.csv --loss binary_crossentropy --resize 8x8 --strategy parameter-server
sed -i 's/,emu/,zebra/' classes.csv
refused 65 "the class zebra is none of the 3 classes" "classes that training does not have" fit classes --validation-data data --validation-labels classes.csv
if command -v mpirun >/dev/null; then
    ranks() { limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$train" "$@"; }
    ranks evaluate --model numbers.json --weights m.safetensors --data data --labels numbers.csv --resize 8x8 --metrics mape --summary-json mape2.json >/dev/null 2>&1
    is "$(python3 -c 'import json; print(abs(json.load(open("mape2.json"))["mape"] / json.load(open("mape.json"))["mape"] - 1) < 1e-6)')" True "two ranks: the mape of one"
    capture ranks fit --model numbers.json --data data --labels few.csv --loss huber --resize 8x8
    like "$status $err" "^65 .*few.csv, line 1: .*3 outputs, not 2" "two ranks: an error is said, and ends both"
    run=(fit --model several.json --data data --labels several.csv --loss binary_crossentropy --resize 8x8 --global-batch-size 4
        --epochs 2 --verbose 0 --strategy multi-worker-mirrored "${buckets[@]}")
    limit 60 "$train" "${run[@]}" --log-dir r1
    ranks "${run[@]}" --log-dir r2 >/dev/null 2>&1
    is "$(paste -d, r1/history.csv r2/history.csv | awk -F, 'NR > 1 { print ($2 - $6) ^ 2 < 1e-12 && ($4 - $8) ^ 2 < 1e-10 }' | tr '\n' ' ')" "1 1 " \
        "two ranks have the numbers of one, with batches that are shuffled"
fi
done_testing
