#!/bin/bash
# run_folder.t: run.json and pace.jsonl in the log folder, what --quiet and NO_COLOR leave out, and the last lines of a run.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
train=$hpc_train
mpi=()
run() { limit 120 "${mpi[@]}" "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 12 --global-batch-size 24 --verbose 2 \
    "${buckets[@]}" "$@"; }
command -v python3 >/dev/null || skip_all "no python3 here"
look() { python3 -c "import json; run = json.load(open('log/run.json')); pace = [json.loads(line) for line in open('log/pace.jsonl')]; print($1)"; }

# ---- what a run is ----
capture run --epochs 3 --validation-data "$work/pictures" --log-dir log --summary-json s.json --seed 7
is "$status" 0 "a run with a log folder" || diag "$err"
is "$(look 'run["format"], run["model"], run["workers"], run["global_batch"], run["epochs"], run["steps_per_epoch"], run["seed"], run["state"], run["why"]')" \
    "1 mnist-convnet 1 24 3 12 7 finished None" "run.json has its settings"
like "$(look '" ".join(run["command"])')" "hpc-train fit --model mnist-convnet .*--seed 7$" "and its command"
is "$(look '{key: value for key, value in run["summary"].items()} == json.load(open("s.json"))')" True "and the summary"
is "$(look 'len(run["starts"]), run["starts"][0]["epoch"], [len(node["ranks"]) for node in run["nodes"]], run["ended"] >= run["starts"][0]["time"] > 1.7e9')" \
    "1 0 [1] True" "and start, end and nodes"
like "$(look 'run["libraries"]["oneDNN"]')" "^oneDNN [0-9]" "and the libraries' versions"

# ---- how long the parts of a step take ----
is "$(look '[(line["epoch"], line["step"], line["steps"]) for line in pace]')" "[(1, 10, 10), (1, 12, 2), (2, 12, 12), (3, 12, 12)]" \
    "pace.jsonl: after the first steps, and at the end of each epoch"
is "$(look 'all(0 < sum(line[part + "_ms"][0] for part in ("input", "forward", "backward", "wait", "update")) <= line["step_ms"][0] * 1.001 for line in pace)')" True \
    "the parts make up the step" || diag "$(cat log/pace.jsonl)"
is "$(look 'all(1 < line["memory_mb"][0] < 1e5 for line in pace)')" True "with the memory"

# ---- continued, stopped, failed ----
rm -rf log
run --epochs 2 --log-dir log --checkpoint-dir ckpt >/dev/null
run --epochs 4 --log-dir log --checkpoint-dir ckpt >/dev/null
is "$(look '[start["epoch"] for start in run["starts"]], run["state"], [line["epoch"] for line in pace if line["step"] == 12]')" "[0, 2] finished [1, 2, 3, 4]" \
    "a run that is continued: both starts, and the pace of all epochs"
cp -r log good
capture run --epochs 2 --log-dir log --learning-rate 1e6
is "$status $(diff -r log good | grep -v "diverged-\|status.json\|^[<>0-9\\]\|^---")" "65 " "a run that diverges at once replaces nothing of it" || diag "$err"
for verbose in 0 2; do
    capture limit 120 "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 12 --global-batch-size 24 --epochs 2 --log-dir log \
        --optimizer adam --learning-rate 3000 --verbose $verbose
    is "$status $(diff -r log good | grep -v "diverged-\|status.json\|^[<>0-9\\]\|^---")" "65 " "nor does one that diverges within an epoch, --verbose $verbose" || diag "$err"
    rm -rf log
    cp -r good log
done
capture run --epochs 3 --initial-epoch 2 --log-dir log
is "$(look 'len(run["starts"]), [(line["epoch"], line["step"]) for line in pace if line["step"] == 12]')" "1 [(3, 12)]" "--initial-epoch without a checkpoint is a run of its own" || diag "$err"
# cut STEP: a run that is killed once it has this step's checkpoint
cut() {
    rm -rf log cut
    run --epochs 40 --log-dir log --checkpoint-dir cut --checkpoint-every "$1" >o 2>&1 &
    until [ -e "$(printf 'cut/step-%010d/manifest.json' "$1")" ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -KILL "$(pgrep -P "$(pgrep -P $!)")" 2>/dev/null
    wait $! 2>/dev/null
}
cut 5
run --epochs 60 --log-dir log --checkpoint-dir cut >/dev/null
is "$(look 'run["state"]')" finished "a run cut after a checkpoint is continued, with its folder" || diag "$(ls -la log)"
for _ in {1..8}; do # once more if it had been faster than the look at it
    cut 20
    before="$(look 'run["state"], [line["epoch"] for line in pace]')"
    [[ $before != *finished* ]] || continue
    break
done
capture run --epochs 1 --log-dir log --checkpoint-dir cut
is "$status $(look 'run["state"], run["epochs"], [line["epoch"] for line in pace]')" "0 finished 40 ${before#running }" \
    "with fewer epochs than are done nothing is left: it is finished, its files stay" || diag "$before" "$out$err"
is "$(python3 -c 'import json; print(json.load(open("log/status.json"))["state"])')" finished "status.json says so, too"
rm -rf log
capture env NAN_AT=30 LD_PRELOAD="$top_builddir/tests/results/.libs/nan_once.so" "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 12 \
    --global-batch-size 24 --verbose 2 --epochs 9 --log-dir log
if [ "$status" = 65 ]; then
    is "$(look 'run["state"]')" failed "a run that an error ends: failed" || diag "$err"
else
    skip "a run that an error ends" "nan_once had no effect here"
fi
rm -rf log
capture run --epochs 40 --log-dir log --stop-at loss=100
is "$status $(look 'run["state"], run["why"]')" "0 finished stopped early" "stopped early"
rm -rf log
run --epochs 100000 --log-dir log >o 2>&1 &
until grep -q 'Epoch 3/' o || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
is "$(look 'run["state"], run["summary"], run["ended"]')" "running None None" "while it runs"
kill -TERM "$(pgrep -P $!)"
wait $!
is "$(look 'run["state"], run["why"]')" "stopped SIGTERM" "stopped by a signal" || diag "$(cat o)"

# ---- started again and again ----
# start EPOCHS STEPS: a start in the background, of so many steps an epoch
start() {
    "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch "$2" --global-batch-size 24 --verbose 2 --epochs "$1" --log-dir log \
        --checkpoint-dir again --checkpoint-every 5 >o 2>&1 &
    pid=$!
}
# end SIGNAL CONDITION...: by this signal, once this is so; how it ended is in $status
end() {
    until "${@:2}" || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
    kill "-$1" $pid
    wait $pid
    status=$?
}
# begun EPOCHS: so many in this start, and status.json has a step of it
begun() { grep -q '"state":"running".*"epoch":[1-9]' log/status.json && [ "$(grep -c ^Epoch o)" -ge "$1" ]; }
# table: that of the starts, without their times
table() { "$train" report log --format md -o - 2>&1 | sed -n '/^| start /,/^$/p' | awk -F' *[|] *' 'NR > 2 && NF { print $2, $4, $5, $6, $7, $10 }'; }
rm -rf log again
start 100000 12
end TERM begun 3
is "$status $(look 'run["state"], "state" in run["starts"][0]')" "75 stopped False" "stopped: 75" || diag "$(cat o)"
seconds=$(look 'run["summary"]["start_seconds"] + run["summary"]["train_seconds"]')
start 100000 12
end KILL begun 3
done=$(look 'run["starts"][0]["steps"]')
start "$(($(wc -l <log/history.csv) + 1))" 12
wait $pid
is "$? $(look '[s.get("state") for s in run["starts"]], run["starts"][0]["why"], len(run["starts"][0]["epoch_seconds"]) > 1')" \
    "0 ['stopped', 'lost', None] SIGTERM True" "stopped, killed, finished: run.json knows how each start ended" || diag "$(cat o log/run.json)"
is "$(look 'run["starts"][1]["epoch"] * 12 + run["starts"][1]["step"]')" "$done" "each begins where its checkpoint was"
is "$(look "abs(run['starts'][0]['start_seconds'] + run['starts'][0]['train_seconds'] - $seconds) < 1e-6")" True "the seconds of the first one are kept"
"$train" report log -o log.md 2>err
like "$(<log.md)" "Finished after [0-9.]+ s in 3 starts\." "the report is of all starts" || diag "$(cat err log.md)"
shape=$(table)
like "$shape" $'^1 1 0 1 [0-9]+ stopped: SIGTERM\n2 [0-9]+ [0-9]+ 1 [0-9]+ killed, or its node failed\n3 [0-9]+ [0-9]+ 1 [0-9]+ finished$' "and says of each where it began and how it ended"
is "$("$train" report log --format csv -o - 2>/dev/null | awk -F, 'NR == 2 || NR == 3 { print ($7 > 0) }' | paste -sd' ')" "1 1" "the first epochs have their seconds"
python3 - <<'END'
import json
run = json.load(open("log/run.json"))
run["starts"] = [{key: start[key] for key in ("time", "job", "host", "epoch", "step")} for start in run["starts"]]
json.dump(run, open("log/run.json", "w"))
END
"$train" report log -o log.md
like "$(<log.md)" "Finished after [0-9.]+ s in the 1 of 3 starts whose time is known\." "files of earlier releases have the last one's alone"
like "$(table)" $'^1 1 0 – – –\n2 [0-9]+ [0-9]+ – – –\n3 ' "and dashes for the others"
rm -rf log again
# last STEP: the checkpoint of that step or a later one is there
last() { [[ $(find again -name manifest.json 2>/dev/null | sort | tail -n 1) > again/step-$(printf %010d "$1") ]]; }
listed() { [ "$(look 'len(run["starts"])' 2>/dev/null)" = "$1" ]; }
start 3 1000000
end TERM last 10
first=$(sed -nE 's/.*stopped by SIGTERM after step ([0-9]+), in epoch 1 of 3.*/\1/p' o)
start 3 1000000
end KILL begun 1
start 3 1000000
end TERM listed 3
is "$status $(look 'len(run["starts"]), {s["epoch"] for s in run["starts"]}, [s["step"] >= '"${first:-0}"' for s in run["starts"]]')" "75 3 {0} [False, True, True]" \
    "a start is known from its first step on" || diag "$(cat o log/run.json)"
is "$(sed -nE 's/.*stopped by SIGTERM after step ([0-9]+), in epoch 1 of 3.*/\1/p' o)" "$(look 'run["starts"][2]["step"] + run["summary"]["steps"]')" \
    "the steps are counted on over all starts"
is "$(python3 -c 'import json; print(json.load(open("log/status.json"))["step"])')" "$(look 'run["starts"][2]["step"] + run["summary"]["steps"]')" "in status.json, too"
is "$(python3 -c 'import json; print([json.loads(line)["step"] for line in open("log/metrics.jsonl")] == list(range(1, 1 + sum(1 for _ in open("log/metrics.jsonl")))))')" True \
    "and in metrics.jsonl"
like "$("$train" report log --format md -o - 2>&1)" "Stopped: SIGTERM after [0-9.]+ s in 3 starts\." "stopped within its first epoch: the report has the seconds of all starts"

# ---- the last lines ----
capture run --epochs 1 --save-weights w.safetensors --log-dir log --checkpoint-dir new
like "$out" $'\nweights: w\\.safetensors; [^\n]*\nhistory: log; to see it: hpc-train report log\ncheckpoints: new; ' "the last lines say what was written, and what to do with it" || diag "$out"
unlike "$out" "summary" "and name nothing else"
capture limit 60 "$train" fit --model mnist-convnet --data "$work/pictures" --steps-per-epoch 2 --quiet --save-weights w.safetensors
is "$status $out$err" "0 " "--quiet: nothing"
capture limit 60 "$train" fit --model mnist-convnet --data synthetic:64 --quiet --verbose 1
like "$status $err" "^64 .*--quiet and --verbose 1: give one" "--quiet --verbose 1"
capture run --epochs 1 --verbose 1
unlike "$out" $'[\r\033]' "no bar where the output is no terminal"
if command -v script >/dev/null; then
    on_terminal() { TERM=xterm "$@" script -qec "'$train' fit --model mnist-convnet --data synthetic:64" /dev/null; }
    like "$(on_terminal env)" $'\033\\[32m' "a bar with colours on a terminal"
    unlike "$(on_terminal env NO_COLOR=1)" $'\033\\[3' "without them: NO_COLOR"
    unlike "$(on_terminal env TERM=dumb)" $'\033' "no bar: TERM=dumb"
fi

# ---- ranks ----
if command -v mpirun >/dev/null; then
    mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
    rm -rf log
    capture run --epochs 2 --log-dir log
    is "$(look 'run["workers"], [node["ranks"] for node in run["nodes"]], {len(line["wait_ms"]) for line in pace}')" "2 [[0, 1]] {2}" "2 ranks: numbers of each" || diag "$err"
    unlike "$out" $'[\r\033]' "no bar under mpirun"
else
    skip "2 ranks" "no mpirun here"
fi
done_testing
