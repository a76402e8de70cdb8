#!/bin/bash
# best.t: --save-best keeps the weights of the best epoch, as Keras' ModelCheckpoint does; a loss that is not finite is traced
# to its layer, saved nowhere, and with --on-nan resume trained again from the last checkpoint.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
train=$hpc_train
run() { limit 120 "$train" fit --model mnist-convnet --data "$work/pictures" --epochs 6 --steps-per-epoch 5 --global-batch-size 24 \
    --optimizer adam --learning-rate 0.03 --verbose 2 "$@"; }
# best COLUMN min|max: the epoch of history.csv, from 1, that is the best by a column.
best() {
    python3 - "$1" "$2" <<'END'
import csv, sys
rows = list(csv.DictReader(open("log/history.csv")))
print(1 + rows.index((min if sys.argv[2] == "min" else max)(rows, key=lambda r: float(r[sys.argv[1]]))))
END
}
# is_best COLUMN min|max OPTION...: best.safetensors is what a run of that many epochs ends with.
is_best() {
    local epochs
    rm -rf log best.safetensors
    run --validation-data "$work/pictures" --log-dir log --save-best best.safetensors "${@:3}" >/dev/null || { ok 1 "$1 $2 runs"; return; }
    epochs=$(best "$1" "$2")
    run --validation-data "$work/pictures" --epochs "$epochs" --save-weights last.safetensors >/dev/null
    is "$(cmp best.safetensors last.safetensors 2>&1)" "" "the best epoch by $1, $2: number $epochs"
}
if command -v python3 >/dev/null; then
    is_best val_loss min
    is_best val_accuracy max --monitor val_accuracy
    is_best accuracy max --monitor accuracy
    is_best val_loss max --monitor val_loss --mode max
else
    skip "the best epoch" "no python3 here"
fi
# A run that continues goes on with the best so far: what is not better does not replace it.
rm -rf ckpt
run --checkpoint-dir ckpt --epochs 2 --monitor loss --mode max --save-best most.safetensors >/dev/null
cp most.safetensors most.old
run --checkpoint-dir ckpt --monitor loss --mode max --save-best most.safetensors >/dev/null
is "$(cmp most.safetensors most.old 2>&1)" "" "a run that continues keeps an earlier one's best"
is "$(find ckpt -name 'step-*' | wc -l)" 2 "--checkpoint-keep counts as before"
rm -rf ckpt
run --checkpoint-dir ckpt --checkpoint-every epoch --checkpoint-keep 1 --monitor loss --mode max >/dev/null
like "$("$train" checkpoint list ckpt)" "best" "the best checkpoint stays besides the newest"
is "$(find ckpt -name 'step-*' | wc -l)" 2 "and no other"

refused() { # STATUS MESSAGE OPTION...
    capture run "${@:3}"
    like "$status $err" "^$1 .*$2" "${*:3}: an error"
}
refused 64 "did you mean val_loss|'val_los'.*val_loss" --save-best b --monitor val_los
refused 64 "--monitor val_accuracy needs --validation-data" --save-best b --monitor val_accuracy
refused 64 "--monitor top_k_categorical_accuracy needs --top-k" --save-best b --monitor top_k_categorical_accuracy
refused 64 "--mode is 'least', it must be auto, min or max" --save-best b --mode least
refused 64 "--monitor and --mode are for runs with --save-best or --checkpoint-dir" --monitor loss
refused 64 "would be one file" --save-best b --save-weights b
refused 64 "--on-nan is 'x', it must be stop or resume" --on-nan x
refused 64 "--on-nan resume is for runs with --checkpoint-dir" --on-nan resume
mkdir folder
refused 74 "--save-best: folder is a folder" --save-best folder

# ---- a loss that is not finite ----
nan() { limit 60 "${mpi[@]}" "$train" fit --model mnist-cnn --data "$work/pictures" --epochs 2 --steps-per-epoch 5 --global-batch-size 24 --verbose 2 \
    "${buckets[@]}" "$@"; }
mpi=()
rm -rf ckpt
capture nan --learning-rate 1e6 --save-best b.safetensors --save-weights w.safetensors --checkpoint-dir ckpt --checkpoint-every 1
is "$status" 65 "a loss that is not finite: exit status 65" || diag "$err"
like "$err" "in the last \(step [0-9]+, in epoch 1, output of layer [a-z0-9_]+ on rank 0 not finite\)" "step, layer and rank are named"
ok "$([ ! -e b.safetensors ] && [ ! -e w.safetensors ] && [ -e diverged-w.safetensors ]; echo $?)" "nothing of it is last or best"
python3 - diverged-w.safetensors <<'END' 2>/dev/null
import json, struct, sys, math
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
values = struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])
sys.exit(not all(map(math.isfinite, values)))
END
ok $? "the weights are those before the step"
capture "$train" checkpoint export ckpt before.safetensors
is "$status" 0 "the checkpoints are those before it, too" || diag "$err"
if command -v mpirun >/dev/null; then
    mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
    for way in multi-worker-mirrored hybrid pipeline "mirrored --replicas 2" "local-sgd --allow-lossy --local-warmup-steps 9"; do
        # shellcheck disable=SC2086 # several words
        capture nan --learning-rate 1e6 --strategy $way
        like "$status $err" "^65 .*(output|weights) of layer [a-z0-9_]+ on rank [01] not finite" "$way: they are named" || diag "$err"
    done
    mpi=()
fi
# A single loss that is not a number, of a sample of step 8.
once() { NAN_AT=180 LD_PRELOAD=$top_builddir/tests/results/.libs/nan_once.so nan --learning-rate 0.25 --checkpoint-dir back --log-dir back-log "$@"; }
if [ -e "$top_builddir/tests/results/.libs/nan_once.so" ]; then
    capture once --checkpoint-every 1 --on-nan resume --save-weights w.safetensors
    is "$status" 0 "--on-nan resume: with half the learning rate it goes on" || diag "$out" "$err"
    like "$err" "the loss of step 8 is not finite: back to back/step-0*[1-7], with half the learning rate" "it says so"
    like "$(cut -d, -f3 back-log/history.csv | tr '\n' ' ')" "^learning_rate (0.25|0.125) 0.125 $" "history.csv has the lower rate"
    is "$(wc -l <back-log/metrics.jsonl)" 10 "and metrics.jsonl each step once"
    is "$(python3 -c 'import json; run = json.load(open("back-log/run.json")); print(*[s.get("state") for s in run["starts"]], run["state"])')" \
        "went back None finished" "run.json has both parts of it"
    capture nan --learning-rate 0.25 --checkpoint-dir back --epochs 3 --log-dir back-log
    like "$status $(cut -d, -f3 back-log/history.csv | tr '\n' ' ')" "^0 learning_rate [0-9.]+ 0.125 0.125 $" "so has the run that continues it" || diag "$err"
    capture once --epochs 5 --on-nan resume
    is "$status" 65 "it goes back once only"
    rm -rf back back-log
    NAN_RUNS="unset LD_PRELOAD; sleep 1; find back -name '*.safetensors' -exec truncate -s 10 {} +" capture once --checkpoint-every 1 --on-nan resume
    is "$status $(grep -o '"state":"[a-z]*"' back-log/status.json)" '65 "state":"failed"' "the checkpoint is damaged: status.json says that the run has failed" || diag "$err"
    rm -rf back back-log
    capture once --checkpoint-every 100 --on-nan resume
    is "$status" 65 "without a checkpoint there is nothing to go back to"
else
    skip "--on-nan resume" "nan_once is not built"
fi

done_testing
