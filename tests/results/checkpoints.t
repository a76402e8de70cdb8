#!/bin/bash
# checkpoints.t: a run that is killed or stopped continues from its checkpoint with the same bits: weights, history, metrics.
# shellcheck disable=SC2154,SC2046

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
unset HPC_TRAIN_RESCUE_DIR
train=$hpc_train
mpi=()
# Three epochs of seven steps.
steps=(fit --model mnist-convnet --optimizer adam --data "$work/pictures" --epochs 3 --steps-per-epoch 7 --global-batch-size 192 --verbose 2
    --strategy multi-worker-mirrored)
run() { limit 300 "${mpi[@]}" "$train" "${steps[@]}" "${buckets[@]}" "$@"; }
# killed SIGNAL LINES OPTION...: the run, until its metrics have that many lines, once more if it was faster than the look at
# them; leaves $status and errors.
killed() {
    local pid log=$work/log-$2
    for _ in 1 2 3 4 5 6 7 8; do
        rm -rf ckpt "$log"
        "${mpi[@]}" env --default-signal=INT "$train" "${steps[@]}" "${buckets[@]}" "${@:3}" --log-dir "$log" >killed.out 2>errors &
        pid=$!
        until [ "$(cat "$log/metrics.jsonl" 2>/dev/null | wc -l)" -ge "$2" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
        if [ ${#mpi[@]} = 0 ]; then kill "-$1" $pid; else pkill "-$1" -P $pid; fi
        wait $pid 2>/dev/null
        status=$?
        [ $status = 0 ] || return
    done
}
# same A B: whether two runs have the same weights, history and metrics.
same() {
    cmp "$1.safetensors" "$2.safetensors" && cmp "log-$1/history.csv" "log-$2/history.csv" && cmp "log-$1/metrics.jsonl" "log-$2/metrics.jsonl"
}

# near A B: whether the losses of 21 steps are the same to fp32 rounding.
near() {
    python3 - "$1" "$2" <<'END'
import json, sys
one, two = ([json.loads(line)["loss"] for line in open(d + "/metrics.jsonl")] for d in sys.argv[1:])
sys.exit(not (len(one) == len(two) == 21 and all(abs(a - b) < 1e-4 * abs(a) for a, b in zip(one, two))))
END
}

run --save-weights uncut.safetensors --log-dir log-uncut >/dev/null || exit
is "$(wc -l <log-uncut/metrics.jsonl)" 21 "an uncut run"

# ---- killed ----
for at in 3 9 16; do
    killed KILL $at --checkpoint-dir ckpt --checkpoint-every 1
    is "$status" 137 "a run that is killed after $at steps"
    capture run --checkpoint-dir ckpt --checkpoint-every 1 --log-dir log-$at --save-weights $at.safetensors
    like "$status $out" "^0 .*continues ckpt/step-0*[0-9]+: [0-9]+ of 3 epochs are done" "the next one continues it" || diag "$err"
    same uncut $at
    ok $? "with the bits of the uncut run: weights, history.csv, metrics.jsonl"
done
is "$(find ckpt -mindepth 1 -maxdepth 1 -name 'step-*' | wc -l)" 2 "two checkpoints stay"
capture run --checkpoint-dir ckpt --save-weights again.safetensors
is "$status $(cmp uncut.safetensors again.safetensors 2>&1)" "0 " "a finished run has nothing left to train"
run --epochs 4 --save-weights longer.safetensors >/dev/null
capture run --epochs 4 --checkpoint-dir ckpt --save-weights more.safetensors
is "$status $(cmp longer.safetensors more.safetensors 2>&1)" "0 " "and goes on for another epoch"

# ---- stopped ----
for signal in TERM USR1 INT; do
    killed $signal 5 --checkpoint-dir ckpt --checkpoint-every 1
    is "$status" "$([ $signal = INT ] && echo 130 || echo 75)" "SIG$signal: stops" || diag "$(cat errors)"
    ok "$([ "$(find ckpt -name manifest.json | wc -l)" -ge 1 ]; echo $?)" "with a checkpoint"
    capture run --checkpoint-dir ckpt --log-dir log-5 --save-weights 5.safetensors
    same uncut 5
    ok "$((status + $?))" "from which the next run continues" || diag "$err"
done

# ---- ranks ----
if command -v mpirun >/dev/null; then
    model=(--model "$top_srcdir/tests/strategy/residual.json" --global-batch-size 96 --strategy multi-worker-mirrored)
    mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
    run "${model[@]}" --save-weights two.safetensors --log-dir log-two >/dev/null
    killed KILL 8 "${model[@]}" --checkpoint-dir ckpt --checkpoint-every 1
    capture run "${model[@]}" --checkpoint-dir ckpt --log-dir log-8 --save-weights 8.safetensors
    same two 8
    ok "$((status + $?))" "two ranks, BatchNormalization: the same bits" || diag "$err"
    slow=(--learning-rate 0.0001) # else rounding grows with each step, to 4e-4 in these
    killed KILL 8 "${slow[@]}" --checkpoint-dir ckpt --checkpoint-every 1
    mpi=()
    run "${slow[@]}" --log-dir log-one >/dev/null
    capture run "${slow[@]}" --checkpoint-dir ckpt --log-dir log-8
    near log-one log-8
    ok "$((status + $?))" "begun by two ranks, continued by one: the losses of one to fp32 rounding" || diag "$err"
else
    skip "ranks" "no mpirun here"
fi

# ---- refused ----
refused() { # STATUS MESSAGE NAME OPTION...
    capture run --checkpoint-dir ckpt "${@:4}"
    like "$status $err" "^$1 .*$2" "$3"
}
rm -rf ckpt
run --checkpoint-dir ckpt >/dev/null
refused 78 "ckpt/step-0*21 is of a run with global batch 192, this one has 16: .*--resume never" "another batch" --global-batch-size 16
refused 78 'is of a run with seed 0, this one has 1' "another seed" --seed 1
refused 78 'is of a run with optimizer adam, this one has sgd' "another optimizer" --optimizer sgd
refused 78 'is of a run with label smoothing 0.0, this one has 0.1' "another label smoothing" --label-smoothing 0.1
refused 78 'is of a run with random flip false, this one has true' "another augmentation" --augment flip
refused 78 'with layers, ' "another model" --model mnist-cnn
refused 64 "checkpoint-every is 'x'" "an interval that is none" --checkpoint-every x
refused 66 "none" "a checkpoint that is not there" --resume none
capture run --resume never
like "$status $err" "^64 .*are for runs with --checkpoint-dir" "resume without checkpoint-dir"
capture run --checkpoint-dir ckpt --resume never --save-weights anew.safetensors
is "$status $(cmp uncut.safetensors anew.safetensors 2>&1)" "0 " "--resume never begins anew"

# ---- a damaged one ----
rm -rf ckpt
run --checkpoint-dir ckpt --checkpoint-every epoch --epochs 2 >/dev/null
for file in ckpt/step-*14/*.safetensors; do printf x | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null; done
capture run --checkpoint-dir ckpt --save-weights damaged.safetensors
is "$status $(cmp uncut.safetensors damaged.safetensors 2>&1)" "0 " "of a damaged checkpoint the one before is taken"
like "$err" "step-0*14" "and it is named"

# ---- file systems ----
# on_bad KIND:N:HOW OPTION...: a run whose N-th such call on its checkpoints fails
shim=$top_builddir/tests/results/.libs/shim.so
on_bad() {
    rm -rf bad bad.safetensors rescued-*
    capture env FAULT="$1" FAULT_UNDER="$work/bad/" FAULT_COUNT="$work/count" LD_PRELOAD="$shim" "$train" "${steps[@]}" --checkpoint-dir bad \
        --save-weights bad.safetensors "${@:2}"
}
newest() { "$train" checkpoint list bad 2>&1 | sed -nE 's/^ +([0-9]+) .* complete.*/\1/p' | head -n 1; }
on_bad fsync:3:hang --checkpoint-every 1
is "$status $(cmp uncut.safetensors bad.safetensors 2>&1)" "0 " "a file system that hangs: training goes on" || diag "$err"
like "$out" "checkpoint skipped: the previous one is still being written" "checkpoints that are left out are said"
like "$err" "bad: the checkpoint of step [0-9]+ has been written for ([5-9]|[1-9][0-9]+) s .*: waiting for it" "and at the end what is waited for"
is "$(newest)" 21 "the last one is complete"
on_bad write:40:once --checkpoint-every 3
is "$status $(newest) $(cmp uncut.safetensors bad.safetensors 2>&1)" "0 21 " "a disk that is full for a while: training goes on, the last checkpoint counts" || diag "$err"
like "$err" "checkpoint: .*No space left on device; earlier ones stay" "it is said"
on_bad write:40:ever --checkpoint-every 3
is "$status $(cmp uncut.safetensors bad.safetensors 2>&1)" "74 " "a disk that stays full: 74 at the end of training" || diag "$err"
like "$(newest)" "^([369]|1[258])$" "and an earlier checkpoint" || diag "$("$train" checkpoint list bad 2>&1)"
on_bad create:20:ever --checkpoint-every 3
is "$status $(cmp uncut.safetensors bad.safetensors 2>&1)" "74 " "a folder in which nothing can be made any more: 74 at the end of training" || diag "$err"
like "$err$(ls rescued-* 2>/dev/null)" "checkpoint: .*the weights are in bad.safetensors$" "the weights are in their place, not beside it"

# ---- one run at a time ----
rm -rf ckpt
"$train" fit --model mnist-convnet --data "$work/pictures" --epochs 100000 --checkpoint-dir ckpt --verbose 0 2>/dev/null &
pid=$!
until [ -e ckpt/lock ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
refused 78 "ckpt.*process [0-9]+" "a second run on the folder"
kill -KILL $pid
wait $pid 2>/dev/null
capture run --checkpoint-dir ckpt --resume never
is "$status" 0 "once it is gone the folder is free" || diag "$err"

done_testing
