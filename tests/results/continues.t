#!/bin/bash
# continues.t: a run that continues with another run's logs, with other columns, or has nothing left to do, loses no file.
# shellcheck disable=SC2154
# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
unset HPC_TRAIN_RESCUE_DIR
train=$hpc_train
quiet() { fit --verbose 0 "$@"; }

quiet --epochs 1 --checkpoint-dir c --log-dir l
cp -r l l.old
capture quiet --checkpoint-dir c --log-dir l --validation-data "$work/pictures"
like "$status $err" "^78 .*l/history.csv has other columns" "a continued log with other columns is refused"
is "$(diff -r l l.old)" "" "and stays"
quiet --epochs 3 --seed 9 --log-dir other
cp -r other other.old
capture quiet --checkpoint-dir c --log-dir other
like "$status $err" "^78 .*other/history.csv is not the one of the checkpoint" "another run's log is not continued"
is "$(diff -r other other.old)" "" "and stays"

quiet --epochs 1 --checkpoint-dir ec --log-dir ev
quiet --epochs 3 --checkpoint-dir ec --log-dir ev
is "$(find ev/train -type f | wc -l) $(ls ev | tr '\n' ' ')" "2 history.csv metrics.jsonl pace.jsonl run.json status.json train " "a continued run adds an event file"

long() { "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 20 --batch-size 8 --verbose 0 --log-dir L "$@"; }
long --epochs 1 --checkpoint-dir ca
cp -r ca cb
long --epochs 100 --checkpoint-dir ca &
pid=$!
until [ "$(wc -l <L/history.csv)" -gt 2 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
capture long --epochs 100 --checkpoint-dir cb
like "$status $err" "^78 .*L/history.csv is being written by another run" "two runs do not continue one log"
wait $pid
is "$? $(tr -d '\0' <L/history.csv | wc -l) $(tr -dc '\0' <L/history.csv | wc -c)" "0 101 0" "the first one's is whole"

quiet --checkpoint-dir d --save-weights w --summary-json s.json --timeline t.json --log-dir dl
mkdir old && cp -r w s.json t.json dl old
capture quiet --checkpoint-dir d --save-weights w --summary-json s.json --timeline t.json --log-dir dl
is "$status $(for f in w s.json t.json dl; do diff -r $f old/$f; done)" "0 " "a finished run that is started again replaces nothing" || diag "$err"
capture quiet --checkpoint-dir d --summary-json new.json
is "$status $(grep -c '"loss": null' new.json)" "0 1" "a summary that is missing is written, without a loss"

quiet --epochs 20 --log-dir g
cp -r g g.old
capture quiet --epochs 3 --learning-rate 1e6 --log-dir g --checkpoint-dir gc --checkpoint-every 1
is "$status $(cmp g/earlier-history.csv g.old/history.csv 2>&1)$(cmp g/earlier-metrics.jsonl g.old/metrics.jsonl 2>&1)" "65 " \
    "a run with checkpoints that diverges keeps an earlier log"

echo good >b
ln -s a link
"$train" fit --model mnist-convnet --data "$work/pictures" --epochs 1000000 --steps-per-epoch 2 --batch-size 8 --verbose 0 --log-dir ll \
    --save-weights link 2>errors &
pid=$!
until [ -s ll/history.csv ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
ln -sfn b link
kill -TERM $pid
wait $pid
is "$? $(cat b)" "74 good" "a link that was given another target meanwhile: that file stays"

cp -r d d.old
capture quiet --checkpoint-dir d --save-weights d/step-0000000004/part-00000.safetensors
is "$status $(diff -r d d.old)" "64 " "a checkpoint's file is no output"
capture "$train" checkpoint export d d/step-0000000004/part-00000.safetensors
is "$status $(diff -r d d.old)" "64 " "export does not replace what it reads"
capture "$train" checkpoint export d x.weights.h5
is "$status $(ls x.weights.h5 2>/dev/null)" "64 " "export writes no safetensors under Keras' name"
capture quiet --checkpoint-dir new --save-weights new
unlike "$err" "the weights are in" "the checkpoint folder as an output: before step 1"
mkdir k && ln -s nowhere k/lock
capture quiet --checkpoint-dir k
like "$status $err" "^78 .*k/lock is not a regular file" "a lock that is a link to nothing"
cp -r d e && rm e/*/manifest.json
capture quiet --checkpoint-dir e
like "$status $err" "^0 .*e has no complete checkpoint" "an interrupted copy is named"
# ---- a shorter log, and one whose disk was full ----
quiet --epochs 3 --checkpoint-dir m --log-dir M
rm -r M
quiet --epochs 1 --seed 9 --log-dir M
cp M/history.csv other.csv
capture quiet --epochs 4 --checkpoint-dir m --log-dir M
is "$status $(cmp other.csv M/earlier-history.csv 2>&1)" "0 " "another run's shorter log is kept"
if mkdir small && mount -t tmpfs -o size=12k none small 2>/dev/null; then
    at_exit "umount '$work/small'"
    newest() { find s -name manifest.json 2>/dev/null | sort | tail -n 1; }
    # until STEP: the run, killed once it has a checkpoint of that step or a later one
    until_step() {
        "$train" fit --model mnist-convnet --data "$work/pictures" --epochs 10000 --steps-per-epoch 30 --batch-size 8 --verbose 0 \
            --checkpoint-dir s --checkpoint-every epoch --log-dir small >/dev/null 2>&1 &
        pid=$!
        until [[ $(newest) > s/step-$1 ]] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
        kill -KILL $pid
        wait $pid 2>/dev/null
    }
    until_step 0000000300
    cp small/metrics.jsonl full.jsonl
    mount -o remount,size=10m small
    until_step 0000000600
    is "$(head -c "$(stat -c %s full.jsonl)" small/metrics.jsonl | cmp - full.jsonl 2>&1)" "" "what a full disk had room for of a log stays"
    ok "$([ "$(wc -l <small/metrics.jsonl)" -gt "$(wc -l <full.jsonl)" ]; echo $?)" "and goes on"
else
    skip "a log whose disk was full" "cannot mount"
fi

done_testing
