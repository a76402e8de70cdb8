#!/bin/bash
# control.t: what decides after an epoch: early stopping, plateaus, targets, learning rates from a file, callbacks of a program;
# alike on all ranks and strategies, and as if nothing had been cut after a resume.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
train=$hpc_train
mpi=()
run() { limit 120 "${mpi[@]}" "$train" fit --model mnist-convnet --data "$work/pictures" --validation-data "$work/pictures" --steps-per-epoch 5 \
    --global-batch-size 24 --optimizer adam --verbose 2 "${buckets[@]}" "$@"; }
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "${2:-log}/history.csv" | xargs; }
anew() { rm -rf log ckpt ./*.safetensors; }

# ---- early stopping ----
# A rate with which the loss soon rises again.
stopping=(--epochs 40 --learning-rate 0.03 --early-stopping "val_loss:patience=2,min_delta=0.01,restore_best")
anew
capture run "${stopping[@]}" --log-dir log --save-weights w.safetensors
is "$status" 0 "early stopping ends with 0" || diag "$out" "$err"
epochs=$(wc -w <<<"$(column epoch)")
ok "$([ "$epochs" -lt 40 ]; echo $?)" "before the last epoch, after $epochs"
like "$out" "Epoch $epochs: early stopping" "it says so"
best=$((epochs - 2))
like "$out" "the weights are those of the best epoch, $best" "and whose the weights are"
run --epochs $best --learning-rate 0.03 --save-weights b.safetensors >/dev/null
is "$(cmp w.safetensors b.safetensors 2>&1)" "" "the weights are those of epoch $best"
cp -r log uncut
cp w.safetensors uncut.safetensors
anew=uncut.safetensors
rm -rf log
run "${stopping[@]}" --epochs $((best + 1)) --log-dir log --checkpoint-dir ckpt >/dev/null
capture run "${stopping[@]}" --log-dir log --checkpoint-dir ckpt --save-weights w.safetensors
like "$out" "continues .*Epoch $epochs: early stopping" "a run that is continued ends after the same epoch" || diag "$err"
is "$(cmp log/history.csv uncut/history.csv 2>&1)$(cmp w.safetensors "$anew" 2>&1)" "" "with the same history, and the best weights, of the run before"
capture run "${stopping[@]}" --log-dir log --checkpoint-dir ckpt --save-weights again.safetensors
is "$status $(cmp again.safetensors "$anew" 2>&1)" "0 " "begun again, it has nothing left to train" || diag "$out" "$err"
unlike "$out" "Epoch $((epochs + 1))" "no further epoch"
is "$(echo ckpt/early-stopping-*)" "$(seq -f 'ckpt/early-stopping-%04g.safetensors' $((best > 4 ? best - 3 : 1)) $best | xargs)" "the last best epochs' weights are kept" ||
    diag "$(ls ckpt)"
rm ckpt/early-stopping-*
capture run "${stopping[@]}" --log-dir log --checkpoint-dir ckpt
like "$status $err" "^66 .*early-stopping-0*$best.safetensors.*leave restore_best out" "the best weights are gone: an error says how to go on"
rm -rf new
run --epochs 2 --learning-rate 0.003 --checkpoint-dir new --early-stopping val_loss:patience=20 >/dev/null
cp w.safetensors new/early-stopping-0002.safetensors
capture run --epochs 3 --learning-rate 0.003 --checkpoint-dir new --early-stopping val_loss:patience=20,restore_best
like "$status $err" "^66 .*was not written by this run.*leave restore_best out" "weights of another run are not taken for the best"
rm -rf new
run --epochs 1 --learning-rate 0.003 --checkpoint-dir new --early-stopping val_loss:patience=20,restore_best >/dev/null
run --epochs 2 --learning-rate 0.003 --checkpoint-dir new --early-stopping val_loss:patience=20 >/dev/null
cp w.safetensors new/early-stopping-0002.safetensors
capture run --epochs 3 --learning-rate 0.003 --checkpoint-dir new --early-stopping val_loss:patience=20,restore_best
like "$status $err" "^66 .*early-stopping-0002.safetensors was not written by this run" "nor those of an epoch that was trained without restore_best"
rm -rf new
for until in 3 6 9; do
    run --epochs $until --learning-rate 0.001 --checkpoint-dir new --early-stopping loss:patience=20,restore_best >/dev/null
done
is "$(find new -name 'early-stopping-*' | wc -l)" 4 "four files of best epochs are there after two further runs" || diag "$(ls new)"
capture run --epochs $((epochs + 1)) --learning-rate 0.03 --checkpoint-dir ckpt --early-stopping "val_loss:patience=20"
like "$status $out" "^0 .*Epoch $((epochs + 1))/" "with more patience training goes on"

# ---- learning rates ----
rm -rf log ckpt
plateau=(--epochs 8 --learning-rate 0.004 --reduce-lr-on-plateau "loss:patience=1,factor=0.5,min_delta=0.5,min_lr=0.001")
capture run "${plateau[@]}" --log-dir log
rates=$(column learning_rate)
like "$rates" "^0.004 .*0.002 .*0.001 0.001$" "the rate falls on a plateau, and not below min_lr" || diag "$out" "$err"
like "$out" "Epoch [0-9]: learning rate reduced to 0.002" "it says so"
cp -r log uncut-plateau
rm -rf log
run "${plateau[@]}" --epochs 4 --log-dir log --checkpoint-dir ckpt >/dev/null
run "${plateau[@]}" --log-dir log --checkpoint-dir ckpt >/dev/null
is "$(cmp log/history.csv uncut-plateau/history.csv 2>&1)" "" "the same after a cut"
printf '# warm up\n0 0.001\n1, 0.002\n3 0.0005\n' >rates
rm -rf log
capture run --epochs 5 --learning-rate-file rates --log-dir log
is "$(column learning_rate)" "0.001 0.002 0.002 0.0005 0.0005" "learning rates from a file" || diag "$out" "$err"
cp log/history.csv rates.csv
cp -r log uncut-file
rm -rf log ckpt
run --epochs 2 --learning-rate-file rates.csv --log-dir log --checkpoint-dir ckpt >/dev/null
run --epochs 5 --learning-rate-file rates.csv --log-dir log --checkpoint-dir ckpt >/dev/null
is "$(cmp log/history.csv uncut-file/history.csv 2>&1)" "" "also from an earlier run's history.csv, and after a cut"

# ---- a target ----
rm -rf log ckpt
capture run --epochs 40 --learning-rate 0.003 --stop-at accuracy=0.5 --log-dir log
accuracies=$(column accuracy)
ok "$(awk '{ for (i = 1; i < NF; i++) if ($i >= 0.5) exit 1; exit !($NF >= 0.5 && NF < 40) }' <<<"$accuracies"; echo $?)" "--stop-at ends training after the first epoch that reaches it" ||
    diag "$accuracies" "$out" "$err"
like "$out" "accuracy is 0\.[5-9][0-9]*, training ends" "it says so"
rm -rf ckpt
run --epochs 4 --checkpoint-dir ckpt --stop-at accuracy=0.01 >/dev/null
capture run --epochs 4 --checkpoint-dir ckpt --stop-at accuracy=0.01
unlike "$out" "Epoch" "a target that is reached: nothing is left to train"
capture run --epochs 4 --checkpoint-dir ckpt --stop-at accuracy=1.5
like "$status $out" "^0 .*Epoch 2/4.*Epoch 4/4" "with a further target training goes on" || diag "$err"
rm -rf ckpt
run --epochs 9 --learning-rate 0.03 --checkpoint-dir ckpt --stop-at accuracy=1.5 --early-stopping loss:min_delta=100 >/dev/null
capture run --epochs 4 --learning-rate 0.03 --checkpoint-dir ckpt --stop-at accuracy=1.5 --early-stopping loss:min_delta=100,patience=50
like "$status $out" "^0 .*Epoch 3/4" "with more patience, beside a target" || diag "$err"
cp -r uncut log-of-rates
capture run --learning-rate-file log-of-rates/history.csv --log-dir log-of-rates
like "$status $err" "^64 .*log-of-rates/history.csv is the log that --log-dir writes: copy it first" "rates from the log that is written"

# ---- what is no option ----
refused() { # STATUS MESSAGE OPTION...
    capture run "${@:3}"
    like "$status $err" "^$1 .*$2" "${*:3}: an error"
}
refused 64 "'patience' is 'x'" --early-stopping loss:patience=x
refused 64 "--stop-at is 'accuracy', it must be METRIC=NUMBER" --stop-at accuracy
refused 64 "both set the learning rate" --reduce-lr-on-plateau loss --learning-rate-file rates
refused 64 "--reduce-lr-on-plateau is for runs without --schedule" --reduce-lr-on-plateau loss --schedule cosine
refused 64 "--learning-rate-file is for runs without --schedule and --warmup-epochs" --learning-rate-file rates --warmup-epochs 1
refused 66 "none cannot be opened" --learning-rate-file none
echo "0 fast" >bad
refused 65 "bad: line 1 is not an epoch and a learning rate" --learning-rate-file bad
capture limit 60 "$train" fit --model mnist-convnet --data "$work/pictures" --early-stopping val_loss
like "$status $err" "^64 .*--early-stopping val_loss needs --validation-data" "val_loss without validation data"
refused 64 "--learning-rate-file .*rates.* would be overwritten|rates" --learning-rate-file rates --save-weights rates

# ---- callbacks of a program ----
called() { limit 60 "${mpi[@]}" "$top_builddir/tests/results/called" "$work/pictures" "$1"; }
check_calls() { # RANKS
    capture called calls
    is "$status $(grep -c . <<<"$out")" "0 25" "$1: two calls an epoch and two a step" || diag "$out" "$err"
    is "$(head -n 5 <<<"$out" | cut -d ' ' -f 1-4 | xargs)" "epoch_begin 0 -1 0.1 batch_begin 0 0 0.1 batch_end 0 0 0.1 batch_begin 0 1 0.1 batch_end 0 1 0.1" "$1: in this order"
    is "$(grep -c 'epoch_end . -1 0.1 11' <<<"$out")" 3 "$1: at an epoch's end with both losses"
    capture called first-rank
    is "$status $(grep -c . <<<"$out")" "0 25" "$1: callbacks of rank 0 alone" || diag "$out" "$err"
    capture called rates
    is "$(grep epoch_end <<<"$out" | cut -d ' ' -f 4 | xargs)" "0.5 0.25 0.166667" "$1: rank 0's learning rate is taken" || diag "$out" "$err"
    capture called stop-epoch
    is "$status $(tail -n 1 <<<"$out")" "0 fit 0 6 2 0" "$1: any rank ends training after an epoch" || diag "$out" "$err"
    capture called stop-batch
    is "$status $(tail -n 1 <<<"$out")" "0 fit 0 5 2 0" "$1: or after the next step" || diag "$out" "$err"
    capture called fail
    like "$status $(tail -n 1 <<<"$out")" "^78 fit 78 3 " "$1: a callback's error is the run's" || diag "$out" "$err"
}
check_calls "1 rank"

# ---- ranks and strategies ----
if can_mpirun 2>/dev/null || command -v mpirun >/dev/null; then
    mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
    check_calls "2 ranks"
    for strategy in multi-worker-mirrored hybrid pipeline "local-sgd --allow-lossy"; do
        rm -rf log
        # shellcheck disable=SC2086
        capture run "${stopping[@]}" --strategy $strategy --log-dir log --save-weights w.safetensors
        seen=$(wc -w <<<"$(column epoch)")
        like "$status $out" "^0 .*Epoch $seen: early stopping.*of the best epoch, [0-9]+" "$strategy on 2 ranks stops, too, after $seen epochs" || diag "$err"
    done
else
    skip "2 ranks" "no mpirun here"
fi
done_testing
