#!/bin/bash
# validation_split.t: --validation-split holds out the same pictures on any number of ranks, when a run is continued, and in evaluate.
# Which ones: tests/unit/agent/data/test_hold_out.c, tests/peers/data.t.
# shellcheck disable=SC2154

# shellcheck source=tests/results/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit
half=(--validation-split 0.25)
values() { cut -d, -f"$(head -n1 "$1" | tr , '\n' | grep -nE '^val_' | cut -d: -f1 | paste -sd,)" "$1"; }

capture fit "${half[@]}" --log-dir one --save-weights w.safetensors
is "$status" 0 "a share of the training pictures" || diag "$err"
like "$out" "training: 192 pictures.*validation: 64 pictures, .*train-images-idx3-ubyte.* \\(the last 25 %\\)" "both parts are named" || diag "$out"
lines=$(values one/history.csv)
like "$lines" $'^val_accuracy,val_loss\n[0-9.]+,[0-9.]+\n' "history.csv has the validation" || diag "$lines"
capture limit 60 "$hpc_train" evaluate --model mnist-convnet --weights w.safetensors --data pictures "${half[@]}"
like "$status $out" "^0 64 samples - accuracy: $(printf %.4f "$(tail -n1 <<<"$lines" | cut -d, -f1)") - loss: $(printf %.4f "$(tail -n1 <<<"$lines" | cut -d, -f2)")" \
    "evaluate has the same part" || diag "$lines" "$out" "$err"
capture fit "${half[@]}" --log-dir other --seed 8
is "$status $(values one/history.csv | wc -l)" "0 3" "another seed" || diag "$err"
like "$out" "validation: 64 pictures, .*the last 25 %" "holds out the same"

# ---- ranks, continued runs ----
if command -v mpirun >/dev/null; then
    use_key "$work/key"
    capture limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$hpc_train" fit --model mnist-convnet --data pictures \
        --epochs 2 --steps-per-epoch 2 --global-batch-size 8 --verbose 2 "${buckets[@]}" --strategy multi-worker-mirrored "${half[@]}" --log-dir two
    is "$status" 0 "on two ranks" || diag "$err"
    ok "$(paste -d, <(values one/history.csv | tail -n2) <(values two/history.csv | tail -n2) |
        awk -F, '{ d = $2 - $4; if (d < 0) d = -d; if (d > 1e-5 * $2) bad = 1 } END { print NR == 2 ? bad + 0 : 1 }')" "the same validation" ||
        diag "$(values one/history.csv)" "$(values two/history.csv)"
fi
capture fit "${half[@]}" --epochs 1 --log-dir three --checkpoint-dir c
is "$status" 0 "an epoch, with a checkpoint" || diag "$err"
capture fit "${half[@]}" --log-dir three --checkpoint-dir c --save-weights more.safetensors
is "$status $(cmp more.safetensors w.safetensors 2>&1) $(values three/history.csv)" "0  $lines" "continued: the same bits, the same validation" || diag "$err"
capture fit --validation-split 0.5 --epochs 3 --checkpoint-dir c
like "$status $err" "^78 .*training samples 192, this one has 128" "another share is another run"

# ---- what it is for, and what not ----
capture fit "${half[@]}" --early-stopping val_loss:patience=1 --metrics f1 --save-best best.safetensors
is "$status $([ -s best.safetensors ]; echo $?)" "0 0" "early stopping, metrics and --save-best have it" || diag "$err"
refused() { # STATUS WORDS OPTION…
    capture fit "${@:3}"
    like "$status $err" "^$1 .*$2" "${*:3}" || diag "$out"
}
refused 64 "--validation-split and --validation-data are both given: give one" "${half[@]}" --validation-data pictures
for share in 0 1 0.0 1.0; do
    refused 64 "--validation-split $share: it must be above 0 and below 1, such as 0.2" --validation-split $share
done
refused 64 "'20%' is not a number from 0 to 1" --validation-split 20%
refused 64 "'2' is not a number from 0 to 1" --validation-split 2
refused 64 "'-0.1' is not a number from 0 to 1" --validation-split=-0.1
refused 65 "of the 256 samples in .*, 256 would be held out and 0 trained: both parts need at least one" --validation-split 0.9999
refused 64 "--monitor val_loss needs --validation-data or --validation-split" --save-best best.safetensors --monitor val_loss

# ---- arrays sorted by class: Keras holds out the last classes alone, and says nothing ----
mkdir sorted
python3 - <<'END' || skip_all "no python3 here"
import struct
pictures = bytes(28 * 28 * 40)
open("sorted/train-images-idx3-ubyte", "wb").write(struct.pack(">4I", 2051, 40, 28, 28) + pictures)
open("sorted/train-labels-idx1-ubyte", "wb").write(struct.pack(">2I", 2049, 40) + bytes(i // 4 for i in range(40)))
END
capture limit 60 "$hpc_train" fit --model mnist-convnet --data sorted "${half[@]}" --batch-size 8
like "$status $err" "^0 .*warning: validation: 8 of 10 pictures are of classes without a training picture, such as 8" \
    "held out classes are named" || diag "$out"
done_testing
