#!/bin/bash
# parameter_server_reports.t: what server 0 shows of a run (status.json, --metrics-file, pace.jsonl, and the commands that read
# them), and learning rates that change between epochs, on all servers.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
export HPC_TRAIN_JOIN_SECONDS=60
servers=2 workers=2

# begin NAME: nobody has been started yet. Ports that nobody listens on.
begin() {
    local port=$((29000 + RANDOM % 3000)) addresses=()
    name=$1 pids=()
    while [ ${#addresses[@]} -lt $((servers + workers)) ]; do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || addresses+=("\"127.0.0.1:$port\"")
        port=$((port + 1))
    done
    cluster="\"ps\":[$(IFS=,; echo "${addresses[*]:0:servers}")],\"worker\":[$(IFS=,; echo "${addresses[*]:servers}")]"
}

# start ROLE INDEX OPTION…: its pid is then in ${pid_of[ROLEINDEX]}, what it says in $work/NAME.ROLE.INDEX.out. Node of worker 1: there.
declare -A pid_of
start() {
    local role=$1 index=$2 rank=$2 here="{\"name\":\"here\",\"tasks\":$((servers + workers - 1)),\"gpus\":0}" there='{"name":"there","tasks":1,"gpus":0}'
    local local_rank node_rank=0 writes=()
    shift 2
    [ "$role" = ps ] || rank=$((servers + index))
    local_rank=$rank
    [ $rank -lt $((servers + workers - 1)) ] || local_rank=0 node_rank=1
    [ "$role$index" != ps0 ] || writes=(--log-dir "$work/$name" --save-weights "$work/$name.safetensors" --summary-json "$work/$name.json")
    HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.$name\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index},\"rank\":$rank,
        \"local_rank\":$local_rank,\"node_rank\":$node_rank,\"nodes\":[$here,$there]}" \
        timeout --foreground --kill-after=5 300 "$hpc_train" fit --strategy parameter-server --data "$work/pictures" --seed 3 \
        --verbose 2 "${writes[@]}" "$@" >"$work/$name.$role.$index.out" 2>&1 &
    pid_of[$role$index]=$!
    pids+=($!)
}
start_all() {
    local i
    for ((i = 0; i < servers; i++)); do start ps $i "$@"; done
    for ((i = 0; i < workers; i++)); do start worker $i "$@"; done
}

# finish: waits for all; their exit codes are then in $statuses.
finish() {
    local pid
    statuses=
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null
        statuses+="$? "
    done
}
trained() { start_all "$@" && finish; }
said() { cat "$work/$name".*.out; }
program_of() { pgrep -P "${pid_of[$1]}"; }
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$work/$2/history.csv" | xargs; }
# ask FILE EXPRESSION: of the JSON in FILE, `d`, or, of a .jsonl, the list of its lines.
ask() {
    python3 -c 'import json, sys
text = open(sys.argv[1]).read()
d = [json.loads(line) for line in text.splitlines()] if sys.argv[1].endswith("l") else json.loads(text)
print(eval(sys.argv[2]))' "$@"
}
# until_ COMMAND…: waits until it succeeds; a minute and more.
until_() {
    for _ in {1..600}; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    return 1
}

# ---- learning rates -------------------------------------------------------------------------------------------------
# Each server has a part of the weights: all must have the rates of one rank's run, also for an epoch's last update, which a server
# makes only when the next epoch's parameters are pulled.
length=(--steps-per-epoch 6) steps=24
changes=(--model mnist-convnet --momentum 0.9 --epochs 4)
plateau=("${changes[@]}" --reduce-lr-on-plateau "loss:patience=1,factor=0.1,min_delta=1")
reference "${plateau[@]}"
sync=("${length[@]}" --global-batch-size "$global_batch" --ps-sync "${from[@]}")
begin many
trained "${plateau[@]}" "${sync[@]}"
is "$statuses" "0 0 0 0 " "--reduce-lr-on-plateau, 2 servers, 2 workers" || diag "$(said)"
is "$(column learning_rate many)" "0.0001 0.0001 1e-05 1e-06" "the rate falls as that of one rank" || diag "$(column learning_rate one)"
like "$(said)" "Epoch 2: learning rate reduced to 1e-05" "server 0 says so"
is "$(field many learning_rate)" "$(field one learning_rate)" "the summary has the next one"
same_results "the rate falls"
cp -r "$work/many" "$work/uncut"
rm -rf "$work/many"
trained "${plateau[@]}" "${sync[@]}" --epochs 3 --checkpoint-dir "$work/ckpt"
servers=1 workers=1
begin many
trained "${plateau[@]}" "${sync[@]}" --checkpoint-dir "$work/ckpt"
like "$statuses $(said)" "^0 0  .*continues .*: 3 of 4 epochs are done" "the run is cut after 3 epochs; one server and one worker go on" || diag "$(said)"
is "$(column learning_rate many)" "$(column learning_rate uncut)" "with the rates of the uncut run"
same_results "after the cut"
cp "$work/many/pace.jsonl" "$work/pace.jsonl"
begin many
trained "${plateau[@]}" "${sync[@]}" --checkpoint-dir "$work/ckpt"
is "$statuses $(ask "$work/many/status.json" "d['state'], d['epoch'], d['step']") $(cmp "$work/many/pace.jsonl" "$work/pace.jsonl" 2>&1)" "0 0  ('finished', 4, 6) " \
    "nothing is left to train: the files stay" || diag "$(said)"
is "$(ask "$work/pace.jsonl" "[l['epoch'] for l in d if l['step'] == 6]")" "[1, 2, 3, 4]" "pace.jsonl goes on after a cut"
servers=2 workers=2
printf '0 0.0001\n1 0.00001\n3 0.0002\n' >"$work/rates"
file=("${changes[@]}" --learning-rate-file "$work/rates" --validation-data "$work/pictures")
reference "${file[@]}"
begin many
rm -rf "$work/many"
trained "${file[@]}" "${sync[@]}"
is "$statuses" "0 0 0 0 " "--learning-rate-file, with validation data" || diag "$(said)"
is "$(column learning_rate many)" "0.0001 1e-05 1e-05 0.0002" "the rates are the file's"
same_results "rates of the file"
# Asynchronous: with a rate of almost nothing the second epoch changes no weight, on no server. One worker, so that a run can be repeated.
workers=1
begin first
trained --model mnist-convnet --learning-rate 0.01 --batch-size 64 --epochs 1
printf '0 0.01\n1 1e-30\n' >"$work/rates"
begin still
trained --model mnist-convnet --learning-rate-file "$work/rates" --batch-size 64 --epochs 2
is "$statuses $(column learning_rate still)" "0 0 0  0.01 1e-30" "asynchronous, a rate of almost nothing" || diag "$(said)"
is "$(cmp "$work/first.safetensors" "$work/still.safetensors" 2>&1)" "" "no server's weights change any more"
begin moves
trained --model mnist-convnet --learning-rate 0.01 --batch-size 64 --epochs 2
like "$(cmp "$work/first.safetensors" "$work/moves.safetensors" 2>&1)" "differ" "with the same rate they do"
is "$(python3 -c 'import glob, struct, sys
data = b"".join(open(path, "rb").read() for path in glob.glob(sys.argv[1] + "/train/events*"))
print([struct.pack("<f", rate) in data for rate in (0.01, 1e-30)])' "$work/still")" "[True, True]" "the event files have both rates"
workers=2

# A run that one rank began, and that went back to a checkpoint with half the rate.
if [ -e "$top_builddir/tests/results/.libs/nan_once.so" ]; then
    half=("${changes[@]}" --learning-rate 0.002 --on-nan resume --checkpoint-dir "$work/half" --checkpoint-every 1)
    NAN_AT=350 LD_PRELOAD=$top_builddir/tests/results/.libs/nan_once.so train 1 half "${half[@]}" --epochs 2
    like "$(column learning_rate half)" "^0.00[12] 0.001$" "one rank's run with half the learning rate" || diag "$(cat "$work/half.out")"
    begin half
    trained "${changes[@]}" "${length[@]}" --global-batch-size "$global_batch" --ps-sync --learning-rate 0.002 --checkpoint-dir "$work/half" --epochs 3
    like "$statuses$(column learning_rate half)" "^0 0 0 0 0.00[12] 0.001 0.001$" "parameter servers that go on keep it" || diag "$(said)"
else
    skip "a run that went back" "nan_once is not built"
fi

# ---- the state of a run ---------------------------------------------------------------------------------------------
begin shown
start_all --model mnist-convnet --batch-size 16 --epochs 100000 --metrics-file "$work/run.prom"
knows() { [ "$(ask "$work/shown/status.json" "sum(r['step_ms'] is not None for r in d['ranks'])")" = "$1" ]; }
until_ knows 2
is "$(ask "$work/shown/status.json" "[(r['rank'], r['node'], r['step_ms'] > 0, r['memory_mb'] > 0, r['gpu']) for r in d['ranks']]")" \
    "[(0, 'here', True, True, None), (1, 'there', True, True, None)]" "status.json has each worker, with its node" || diag "$(cat "$work/shown/status.json")" "$(said)"
is "$(ask "$work/shown/status.json" "d['state'], d['workers'], d['epochs'], d['learning_rate'] > 0, 0 < d['step'] <= d['steps'], d['images_per_second'] > 0")" \
    "('running', 2, 100000, True, True, True)" "and the state of the run"
counts() { grep -q 'hpc_train_rank_step_seconds{.*strategy="parameter-server",rank="1",node="there"} [0-9]' "$work/run.prom"; }
until_ counts
ok $? "--metrics-file has them" || diag "$(cat "$work/run.prom")"
capture limit 60 "$hpc_train" top "$work/shown"
like "$status $out" "^0 .*mnist-convnet.*2 ranks.*0 +here.*1 +there" "hpc-train top shows them" || diag "$err"
kill -KILL "$(program_of worker1)"
wait "${pid_of[worker1]}" 2>/dev/null
until_ knows 1
is "$(ask "$work/shown/status.json" "[r['step_ms'] is None for r in d['ranks']]")" "[False, True]" "nothing is known of a worker that was lost"
kill -TERM "$(program_of ps0)"
finish
is "$statuses" "143 143 143 137 " "SIGTERM to server 0" || diag "$(said)"
is "$(ask "$work/shown/status.json" "d['state']")" stopped "status.json says that it was stopped"
ok "$([ ! -e "$work/run.prom" ]; echo $?)" "--metrics-file is gone"
is "$(ask "$work/shown/pace.jsonl" "all(len(l[k]) == 2 for l in d for k in l if k[-3:] in ('_ms', '_mb'))")" True "pace.jsonl has both workers in each line"
is "$(ask "$work/shown/pace.jsonl" "0.5 < sum(l[p + '_ms'][0] for l in d for p in ('input', 'forward', 'backward', 'wait', 'update')) / sum(l['step_ms'][0] for l in d) < 1.001")" \
    True "the parts make up a step"
is "$(ask "$work/shown/pace.jsonl" "d[-1]['step_ms'][1], d[-1]['step_ms'][0] > 0")" "(None, True)" "after its loss a worker has null"
is "$(ask "$work/shown/run.json" "[(n['name'], n['ranks']) for n in d['nodes']]")" "[('here', [0]), ('there', [1])]" "run.json has the workers' nodes"
capture limit 60 "$hpc_train" report "$work/shown" -o "$work/shown.html"
like "$(<"$work/shown.html")" "Time of a step.*1 · there" "hpc-train report shows where a step's time goes" || diag "$err"

begin ended
trained --model mnist-convnet --batch-size 64 --epochs 2 --ps-sync --metrics-file "$work/run.prom" --validation-data "$work/pictures" --top-k 3
is "$statuses $(ask "$work/ended/status.json" "d['state'], d['epoch'], d['val_loss'] > 0, d['ranks'][1]['wait_ms'] >= 0")" "0 0 0 0  ('finished', 2, True, True)" \
    "at the end status.json has the last evaluation" || diag "$(said)"
last() { local all; all=$(column "$1" ended); printf %.4f "${all##* }"; }
is "$(ask "$work/ended/status.json" "' '.join('%.4f' % v for v in d['metrics'].values())")" \
    "$(last top_k_categorical_accuracy) $(last val_top_k_categorical_accuracy)" "and top-k accuracy, as history.csv has" || diag "$(said)"
is "$(ask "$work/ended/pace.jsonl" "{l['epoch']: l['step'] for l in d}, sum(l['steps'] for l in d)")" "({1: 2, 2: 2}, 4)" "pace.jsonl has a line at the end of each epoch"
workers=1
begin lost
start_all --model mnist-convnet --batch-size 16 --epochs 100000
until_ test -s "$work/lost/history.csv"
kill -KILL "$(program_of worker0)"
finish
is "$statuses $(ask "$work/lost/status.json" "d['state']")" "69 69 137  failed" "a run that is lost has failed" || diag "$(said)"

# ---- usage ----------------------------------------------------------------------------------------------------------
# refused STATUS MESSAGE OPTION…: server 0 alone, which sees it before it waits for anybody.
refused() {
    local expected=$1 message=$2
    shift 2
    begin usage
    start ps 0 --model mnist-cnn "$@"
    finish
    like "$statuses $(said)" "^$expected  .*$message" "$*: an error"
}
refused 64 "reduce-lr-on-plateau is for runs without --schedule" --reduce-lr-on-plateau loss --schedule cosine
refused 64 "both set the learning rate" --reduce-lr-on-plateau loss --learning-rate-file "$work/rates"
refused 66 "none cannot be opened" --learning-rate-file none
begin usage
start worker 0 --model mnist-cnn --learning-rate-file "$work/rates" --warmup-epochs 1
finish
like "$statuses $(said)" "^64  .*learning-rate-file is for runs without --schedule and --warmup-epochs" "a worker sees it as well"
done_testing
