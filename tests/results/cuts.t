#!/bin/bash
# cuts.t: a run that continues from the checkpoint of any step has the bits of one that was not cut: weights and losses, with
# each strategy; with other ranks or another strategy the same losses to fp32 rounding. HPC_TRAIN_LONG=1: many more steps.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
command -v mpirun >/dev/null || skip_all "no mpirun here"
train=$hpc_train
RANDOM=${HPC_TRAIN_SEED:-1}
[ -n "${HPC_TRAIN_LONG-}" ] && cuts=25 epochs=20 || cuts=1 epochs=2
total=$((7 * epochs))
strategy=$top_srcdir/tests/strategy
common=(--data "$work/pictures" --epochs "$epochs" --steps-per-epoch 7 --global-batch-size 24 --verbose 0 "${buckets[@]}")

# fit RANKS NAME OPTION...: with weights and metrics under NAME
fit() {
    local ranks=$1 name=$2
    rm -rf "log-$name"
    limit 300 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "$train" fit "${common[@]}" "${@:3}" \
        --log-dir "log-$name" --save-weights "$name.safetensors" >"$name.out" 2>&1
}
# agree A B TOLERANCE: whether the losses that both have logged are equal, relative to them; and B has the last ones.
agree() {
    python3 - "log-$1/metrics.jsonl" "log-$2/metrics.jsonl" "$3" $total <<'END'
import json, sys
def losses(path):
    rows = [json.loads(line) for line in open(path)]
    return {(r["epoch"], r["step"]): r["loss"] for r in rows}
one, two = losses(sys.argv[1]), losses(sys.argv[2])
tolerance = float(sys.argv[3])
wrong = [k for k in two if not abs(one[k] - two[k]) <= tolerance * abs(one[k])]
sys.exit(f"{len(two)} losses of {len(one)}; differing: {wrong}" if wrong or max(two) != max(one) else 0)
END
}
# cut NAME RANKS OPTION...: continues from checkpoints at random steps.
cut() {
    local name=$1 ranks=$2 steps at step same=0 number=0
    fit "$ranks" uncut "${@:3}"
    ok $? "$name: runs" || { diag "$(cat uncut.out)" && return; }
    for _ in 1 2 3 4 5; do # a disk that is busy lets checkpoints be left out: once more if there is none between
        rm -rf ckpt
        fit "$ranks" whole "${@:3}" --checkpoint-dir ckpt --checkpoint-every 1 --checkpoint-keep $total && cmp uncut.safetensors whole.safetensors >>whole.out 2>&1
        at=$?
        mapfile -t steps < <(find ckpt -mindepth 1 -maxdepth 1 -name 'step-*' ! -name 'step-*00[12]' ! -name "step-*$(printf %03d $total)" | sort | shuf --random-source=<(yes $RANDOM) | head -n $cuts)
        if [ $at != 0 ] || [ ${#steps[@]} -gt 0 ]; then break; fi
    done
    ok $at "$name: checkpoints change nothing" || { diag "$(cat whole.out)" && return; }
    for step in "${steps[@]}"; do
        rm -rf other
        fit "$ranks" after "${@:3}" --checkpoint-dir other --resume "$step" && cmp uncut.safetensors after.safetensors >cmp.out &&
            agree uncut after 0 >cmp.out 2>&1
        at=$?
        number=$((number + 1)) same=$((same + (at == 0)))
        [ $at = 0 ] || diag "$name, from $step: $(tail -n 3 after.out) $(cat cmp.out)"
    done
    ok "$((number == 0 || same != number))" "$name: the bits of the uncut run from $number steps (${steps[*]##*-0})"
}
# elsewhere NAME RANKS OPTION...: continues checkpoints of the last case, at a learning rate at which rounding does not grow: at the
# default one of SGD two uncut runs of mnist-cnn on one rank and on two are 25 % apart after 100 steps.
elsewhere() {
    local name=$1 ranks=$2 step
    step=$(find ckpt -mindepth 1 -maxdepth 1 -name 'step-*' ! -name "step-*$(printf %03d $total)" | sort | head -n 2 | tail -n 1)
    rm -rf other
    fit "$ranks" after "${@:3}" --checkpoint-dir other --resume "$step" && agree uncut after 1e-4 >cmp.out 2>&1
    ok $? "continued by $name: the same losses to fp32 rounding" || diag "$(cat after.out cmp.out)"
}

residual=(--model "$strategy/residual.json" --optimizer adam --augment flip)
wide=(--model "$strategy/wide.json" --optimizer adam)
random=(--model "$strategy/random.json" --momentum 0.9)
mwm=(--strategy multi-worker-mirrored)
stages=(--strategy pipeline --stages 2)
slow=(--learning-rate 1e-3)
lossy=(--allow-lossy --compress-warmup 3)
cut "mnist-cnn, one rank" 1 --model mnist-cnn "${slow[@]}" "${mwm[@]}"
elsewhere "hybrid, two ranks" 2 --model mnist-cnn "${slow[@]}" --strategy hybrid
cut "multi-worker-mirrored" 2 "${residual[@]}" "${mwm[@]}" --gradient-accumulation 3
cut "PowerSGD" 2 "${residual[@]}" "${mwm[@]}" --compress powersgd:2 "${lossy[@]}" # of kernels with padding
cut "hybrid of the last layers" 2 "${wide[@]}" --strategy hybrid --hybrid-form back --gradient-accumulation 3
cut "pipeline of two replicas" 4 "${residual[@]}" "${stages[@]}" --gradient-accumulation 3
cut "mirrored on two ranks" 2 "${residual[@]}" --strategy mirrored --replicas 2 --gradient-accumulation 2
cut "local-sgd" 2 "${residual[@]}" --strategy local-sgd --allow-lossy --local-steps 3 --local-warmup-steps 2
cut "hybrid, dropout" 2 "${random[@]}" "${slow[@]}" --strategy hybrid
elsewhere "pipeline" 2 "${random[@]}" "${slow[@]}" "${stages[@]}" --micro-batches 1
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    for ranks in 1 2 4; do
        for model in "--model mnist-cnn" "${residual[*]}" "${random[*]} --augment flip" "${wide[*]} --sync-batch-norm"; do
            for way in "${mwm[*]}" "--strategy hybrid" "--strategy pipeline" "--strategy mirrored --replicas 2"; do
                # shellcheck disable=SC2086 # several words
                cut "$ranks ranks, ${model##*/} $way" $ranks $model $way
            done
        done
        elsewhere "one rank" 1 "${wide[@]}" --sync-batch-norm "${mwm[@]}"
    done
    cut "four ranks, top-k" 4 "${residual[@]}" "${mwm[@]}" --compress topk:0.1 "${lossy[@]}"
    cut "hybrid by columns" 3 --model mnist-cnn --optimizer adam --strategy hybrid --hybrid-form columns
    cut "central storage" 1 "${random[@]}" --strategy central-storage --replicas 2
fi

done_testing
