#!/bin/bash
# tensorboard.t: the event files of a run read by TensorBoard's own readers, and by its server. Needs a Python with tensorboard,
# HPC_TRAIN_PEERS_PYTHON or python3; skipped where there is none.
# shellcheck disable=SC2154
python=${HPC_TRAIN_PEERS_PYTHON:-python3}
if ! "$python" -c 'import importlib.util as u; assert u.find_spec("tensorboard") and u.find_spec("numpy")' 2>/dev/null; then
    echo "1..0 # SKIP $python has no tensorboard"
    exit 0
fi
# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/../results/lib.sh"
cd "$work" || exit
export TF_CPP_MIN_LOG_LEVEL=3
train=$top_builddir/hpc-train
steps=(fit --model mnist-convnet --data "$work/pictures" --validation-data "$work/pictures" --steps-per-epoch 5 --batch-size 16
    --top-k 3 --seed 7 --verbose 0)
run() { limit 120 "$train" "${steps[@]}" "$@"; }
check() { echo "$@" >>checks; } # by tensorboard_events.py, in the end

run --epochs 5 --learning-rate 0.05 --histogram-every 2 --log-dir once --save-weights once.safetensors
check values once
check histograms once 0,2,4 once.safetensors gradients
check texts once model=mnist-convnet optimizer=sgd learning_rate=0.05 global_batch=16 workers=1 \
    precision=float32 seed=7 strategy=multi-worker-mirrored

# ---- killed, and continued ----
# The checkpoint of each step is of the middle of an epoch, or of one before: the files of both runs have points of one epoch.
interrupted() { # DIR
    local pid
    "$train" "${steps[@]}" --epochs 2000 --checkpoint-dir "$1.ckpt" --checkpoint-every 7 --histogram-every 2 --log-dir "$1" &
    pid=$!
    until [ "$(cat "$1/history.csv" 2>/dev/null | wc -l)" -ge 5 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -KILL $pid
    wait $pid 2>/dev/null
}
interrupted killed
epochs=$(($(wc -l <killed/history.csv) + 3))
capture run --epochs $epochs --checkpoint-dir killed.ckpt --histogram-every 2 --log-dir killed
is "$status $(find killed/train -type f | wc -l)" "0 2" "a run that was killed goes on with a file of its own" || diag "$err"
check values killed
ok "$([ ! -e killed/earlier-events ]; echo $?)" "where it continues its own nothing is moved away"
cp -r killed again
capture run --epochs $epochs --checkpoint-dir killed.ckpt --histogram-every 2 --log-dir killed
is "$status $(diff -r killed again)" "0 " "with nothing left to train no file is added"

# ---- another run in the folder ----
cp -r once later
run --epochs 2 --learning-rate 0.01 --log-dir later
check values later
check count later/earlier-events/train 5
cp -r later diverged
capture run --epochs 3 --learning-rate 1e6 --log-dir diverged
is "$status $(diff -r --exclude=status.json later diverged)" "65 " "a run that diverges leaves an earlier one's files"

# ---- cut ----
cp -r once cut
truncate -s -20 cut/train/events.*
check cut cut

# ---- ranks ----
if command -v mpirun >/dev/null; then
    use_key "$work/key"
    ranks() { limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$train" "${steps[@]}" --log-dir "$@"; }
    for strategy in multi-worker-mirrored mirrored local-sgd hybrid pipeline; do
        ranks "$strategy" --strategy $strategy --epochs 2 --histogram-every 1 --allow-lossy --save-weights $strategy.safetensors >out 2>&1 || diag "$(cat out)"
        check values $strategy
        case $strategy in multi* | mirrored) has=gradients ;; *) has=weights ;; esac
        check histograms $strategy 0,1 $strategy.safetensors $has
    done
else
    skip "two ranks" "there is no mpirun"
fi

# ---- a parameter server, and a worker ----
use_key "$work/key"
servers() { # OPTION…: of two files of one run, as it is continued
    local port=$((21000 + RANDOM % 8000)) role rank=0 pids=() pid worst=0
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    for role in ps worker; do
        HPC_TRAIN_JOIN_SECONDS=60 HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.board\",\"cluster\":{\"ps\":[\"127.0.0.1:$port\"],
            \"worker\":[\"127.0.0.1:$((port + 100))\"]},\"task\":{\"type\":\"$role\",\"index\":0},\"rank\":$rank,\"local_rank\":$rank,
            \"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":2,\"gpus\":0}]}" run --strategy parameter-server "$@" >$role.out 2>&1 &
        pids+=($!) rank=$((rank + 1))
    done
    for pid in "${pids[@]}"; do wait "$pid" || worst=$?; done
    [ $worst = 0 ] || diag "$(cat ps.out worker.out)"
    return $worst
}
servers --log-dir served --epochs 2 --checkpoint-dir served.ckpt
servers --log-dir served --epochs 4 --checkpoint-dir served.ckpt
is "$? $(find served/train -type f | wc -l)" "0 2" "a parameter server continues with a file of its own"
check values served
capture servers --log-dir served --histogram-every 1
like "$status $(cat ps.out)" "^64 .*--histogram-every is not for --strategy parameter-server" "histograms are not for parameter servers"

# ---- options ----
capture run --histogram-every 1
like "$status $err" "^64 .*--histogram-every is a number of epochs, for runs with --log-dir" "histograms need a folder"
mkdir taken && echo >taken/train
capture run --log-dir taken
like "$status $err" "^74 .*--log-dir: taken/train: .*Not a directory" "a folder that is a file is named"

# ---- the server, and all of this read ----
check inspect killed
check serve killed
check serve killed --load_fast=false --reload_multifile=true
tap_of "TensorBoard" "$python" "$top_srcdir/tests/peers/tensorboard_events.py" checks
done_testing
