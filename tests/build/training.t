#!/bin/bash
# training.t: fit's options for optimizer, schedule and loss, on one rank and on several under mpirun.
# shellcheck disable=SC2154,SC2034

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/rounding.sh
. "$top_srcdir/tests/rounding.sh"
work=$(mktemp -d /tmp/hpc-train-training.XXXXXX)
at_exit "rm -rf '$work'"
first_pictures "$work/pictures"
export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=0
fit() { # OPTION…: 8 epochs of 4 small steps
    "$top_builddir/hpc-train" fit --model mnist-convnet --data "$work/pictures" --epochs 8 --steps-per-epoch 4 \
        --log-dir "$work/log" --verbose 0 "$@"
}
# What history.csv has in the column NAME, epoch by epoch.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { printf "%s%.4g", s, $c; s = " " }' "$work/log/history.csv"; }

# ---- schedules: the rate of each epoch's last step ----
rates() { # RATES NAME OPTION…
    local want=$1 name=$2
    shift 2
    fit --batch-size 1 --learning-rate 0.08 "$@"
    is "$(column learning_rate)" "$want" "$name"
}
rates "0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08" "a constant rate"
rates "0.08 0.08 0.08 0.008 0.008 0.008 0.0008 0.0008" "steps at epochs 3 and 6" --schedule step:3,6
rates "0.08 0.08 0.04 0.04 0.04 0.04 0.04 0.04" "a factor of its own" --schedule step:2:0.5
rates "0.04757 0.02378 0.01189 0.005946 0.002973 0.001487 0.0007433 0.0003716" "exponential by epoch" --schedule exponential:0.5
rates "0.08 0.08 0.08 0.08 0.02 0.02 0.02 0.02" "a staircase of four epochs" --schedule staircase:0.25:4
rates "0.07828 0.07092 0.05886 0.04392 0.02839 0.01462 0.004723 0.0001926" "a cosine over the run" --schedule cosine
rates "0.0725 0.0625 0.0525 0.0425 0.0325 0.0225 0.0125 0.0025" "a line to zero" --schedule polynomial:1:0
rates "0.03 0.07 0.07696 0.06435 0.04522 0.02469 0.008266 0.0003422" "after a warm-up of two epochs a cosine takes the rest" \
    --warmup-epochs 2 --schedule cosine
rates "0.03 0.07 0.08 0.08 0.008 0.008 0.008 0.008" "epochs of steps count from the start of the run" \
    --warmup-epochs 2 --schedule step:4
rates "0.08 0.08 0.08 0.08 0.08 0.08 0.08 0.08" "one rank scales nothing" --lr-scaling linear

# ---- what cannot be ----
refused() { # MESSAGE OPTION…
    local want=$1
    shift
    capture fit "$@"
    is "$status" 64 "$* is refused"
    like "$err" "$want" "the error says why"
}
refused "lars has no default" --optimizer lars
refused "there is no optimizer .adagrad.; there are: sgd, adam, adamw, lars, lamb, rmsprop" --optimizer adagrad
refused "adam has beta_1" --optimizer adam --momentum 0.5
refused "the epochs must increase" --schedule step:3,2
refused "step needs a number|.step. needs a number" --schedule step
refused "should begin with a number" --schedule cosine:x
refused "is unknown; there are: constant, step" --schedule sometimes
refused "not after the warm-up" --schedule step:1 --warmup-epochs 1
refused "give one" --clip-norm 1 --clip-value 1
refused "--lr-scaling is for batches that grow" --lr-scaling sqrt --global-batch-size 64

# ---- losses and metrics ----
fit --batch-size 64 --top-k 3 --label-smoothing 0.2 --validation-data "$work/pictures" --summary-json "$work/s.json"
is "$(head -n 1 "$work/log/history.csv")" \
    "epoch,accuracy,learning_rate,loss,top_k_categorical_accuracy,val_accuracy,val_loss,val_top_k_categorical_accuracy" \
    "the columns are Keras'"
ok "$(column loss | awk '{ exit !($1 > 2.2 && $8 > 1) }'; echo $?)" "a smoothed loss stays above its entropy"
ok "$(paste <(column accuracy | tr ' ' '\n') <(column top_k_categorical_accuracy | tr ' ' '\n') |
    awk '$1 > $2 { bad = 1 } END { exit bad }'; echo $?)" "the best is among the best three"
like "$(cat "$work/s.json")" '"optimizer": "sgd"' "the summary names the optimizer"
like "$(cat "$work/s.json")" '"learning_rate": 0.01' "the summary has the learning rate"

# ---- the same on 1, 2 and 4 ranks ----
ranks() { # NUMBER OPTION…: the loss of each step
    local number=$1
    shift
    run_logged "$work/ranks.out" mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$number" \
        "$top_builddir/hpc-train" fit --model mnist-convnet --data "$work/pictures" --epochs 2 --global-batch-size 64 \
        --strategy multi-worker-mirrored "${buckets[@]}" --steps-per-epoch 6 --log-dir "$work/log" --verbose 0 "$@" || return
    sed 's/.*"loss": \([^,]*\),.*/\1/' "$work/log/metrics.jsonl"
}
for options in "--optimizer sgd --momentum 0.9 --nesterov --weight-decay 0.01 --clip-norm 0.1 --gradient-accumulation 2" \
    "--optimizer lars --learning-rate 0.3 --weight-decay 0.001 --clip-value 0.01" \
    "--optimizer lamb --global-clip-norm 0.5 --gradient-accumulation 3 --label-smoothing 0.1 --schedule cosine"; do
    read -ra list <<<"$options"
    ranks 1 "${list[@]}" >"$work/one"
    for number in 2 4; do
        ranks $number "${list[@]}" >"$work/more"
        is "$(near "$work/one" "$work/more" 12 $((64 * positions)))" "" "$number ranks have the losses of one: $options"
    done
done
run_logged "$work/out" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 "$top_builddir/hpc-train" fit \
    --model mnist-convnet --data "$work/pictures" --batch-size 4 --steps-per-epoch 1 --learning-rate 0.01 --lr-scaling sqrt \
    --strategy multi-worker-mirrored "${buckets[@]}" \
    --log-dir "$work/log" --verbose 0
is "$(column learning_rate)" 0.02 "the rate grows with the root of four ranks"

# ---- precision ----
bf16() { # OPTION…: without data: it is refused before any is looked for
    capture env DNNL_MAX_CPU_ISA=AVX512_CORE "$@"
    is "$status" 78 "${*: -4} needs a processor with bf16"
    is "$(grep -c 'precision bf16 needs a processor with AVX512_BF16 or AMX' <<<"$err")" 1 "the error is printed once"
    like "$err" "take --precision fp32" "the error says what to do"
}
two=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$top_builddir/hpc-train")
bf16 "$top_builddir/hpc-train" fit --data "$work/none" --model mnist-cnn --precision bf16
bf16 "$top_builddir/hpc-train" evaluate --weights "$work/none" --model mnist-cnn --precision bf16
bf16 "$top_builddir/hpc-train" summary --model mnist-cnn --precision bf16
bf16 "${two[@]}" bench --model mnist-cnn --precision bf16 --strategy multi-worker-mirrored
capture "$top_builddir/hpc-train" bench --model mnist-cnn --precision int4
is "$status" 64 "a precision that there is not is refused"
like "$err" "precision: there is no precision .int4.; there are: fp32, bf16, fp16" "the error lists the precisions"
capture "$top_builddir/hpc-train" fit --data "$work/none" --model mnist-cnn --precision fp16 --device cpu
is "$status" 78 "fp16 needs a GPU"
like "$err" "precision fp16 needs a GPU: use --device cuda or --precision fp32" "the error is printed before data is read"
if "$top_builddir/hpc-train" summary --model mnist-convnet --precision bf16 >"$work/out" 2>&1; then
    like "$(cat "$work/out")" "once more, in bf16 +0.2 MiB" "the memory has the weights in bf16"
    ranks 1 --learning-rate 0.01 >"$work/fp32"
    ranks 1 --learning-rate 0.01 --precision bf16 --summary-json "$work/s.json" >"$work/one"
    ranks 2 --learning-rate 0.01 --precision bf16 >"$work/more"
    worst() { # FILE FILE: largest relative difference of losses
        paste "$1" "$2" | awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d; lines++ }
            END { print lines == 12 ? worst : lines " steps" }'
    }
    ok "$(awk -v d="$(worst "$work/one" "$work/more")" 'BEGIN { exit !(d <= 1e-3) }'; echo $?)" \
        "2 ranks have the losses of one in bf16 ($(worst "$work/one" "$work/more"))"
    ok "$(awk -v d="$(worst "$work/one" "$work/fp32")" 'BEGIN { exit !(d > 1e-6 && d <= 1e-2) }'; echo $?)" \
        "which are near those of fp32, and others ($(worst "$work/one" "$work/fp32"))"
    like "$(cat "$work/s.json")" '"precision": "mixed_bfloat16"' "the summary names the precision"
    # shellcheck disable=SC2016 # the variable is mpirun's
    capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] ||
        export DNNL_MAX_CPU_ISA=AVX512_CORE; exec "$0" bench --model mnist-cnn --precision bf16' "$top_builddir/hpc-train"
    is "$status" 78 "an error on one rank ends all"
    like "$err" "rank 1.*precision bf16 needs" "the error names that rank"
else
    diag "no bf16 here: $(cat "$work/out")"
fi

# ---- errors before the ranks are connected ----
echo '{"class_name":"Sequential","config":{"name":"s","layers":[{"class_name":"LSTM","config":{"name":"l"}}]}}' >"$work/lstm.json"
for command in fit evaluate predict bench; do
    case $command in
    evaluate | predict) more=(--weights "$work/none.weights.h5") ;;
    *) more=() ;;
    esac
    capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 "$top_builddir/hpc-train" "$command" --model "$work/lstm.json" "${more[@]}"
    is "$status $(grep -c 'LSTM' <<<"$err")" "65 1" "$command: a layer that is refused is said once by three ranks"
done
# shellcheck disable=SC2016 # the variable is mpirun's
capture mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3 sh -c 'model=mnist-cnn; [ "$OMPI_COMM_WORLD_RANK" != 1 ] || model=$1
    exec "$0" bench --batch-size 8 --model "$model"' "$top_builddir/hpc-train" "$work/lstm.json"
is "$status $(grep -c 'LSTM' <<<"$err")" "65 1" "one that only one rank has ends all"
like "$err" "hpc-train: rank 1 \(.*LSTM" "and names that rank"

done_testing
