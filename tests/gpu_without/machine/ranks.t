#!/bin/bash
# Strategies of several ranks on devices: sums by MPI through the hosts' memory, then by what stands in for NCCL.
# shellcheck disable=SC2034,SC2154

needs=mpirun
# shellcheck source=tests/gpu_without/machine/lib.sh
. "$(dirname "$0")/lib.sh"
fit_small logged --device cpu --log-dir "$own/log"

ranks=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 3)
given=("${buckets[@]}") buckets=() # the network is measured
fit_small three-ranks --device cuda --log-dir "$own/log3"
buckets=("${given[@]}")
same_as_cpu three-ranks
like "$err" "sums go through the hosts' memory, not by NCCL: rank 0: libnccl-missing.so" "without NCCL by MPI"
ok "$(python3 - "$own" <<'END'
import json, sys
one, three = ([json.loads(line) for line in open(f"{sys.argv[1]}/{d}/metrics.jsonl")] for d in ("log", "log3"))
print(int(not (len(one) == len(three) == 20 and all(abs(a["loss"] - b["loss"]) < 2e-4 for a, b in zip(one, three)))))
END
)" "step by step"
fit_small local-on-cpu --device cpu --strategy local-sgd --allow-lossy --local-steps 3
fit_small local-on-device --device cuda --strategy local-sgd --allow-lossy --local-steps 3
same_as local-on-cpu local-on-device
for form in rows ${HPC_TRAIN_LONG:+columns} back; do
    for device in cpu cuda; do
        fit_small "$device-$form" --device $device --model mnist-cnn --strategy hybrid --hybrid-form $form --steps-per-epoch 4 --epochs 1
    done
    ok "$(near "$(number "cpu-$form" loss)" "$(number "cuda-$form" loss)")" \
        "hybrid, $form: the loss is the CPU's ($(number "cpu-$form" loss), $(number "cuda-$form" loss))"
    ok "$(near "$(number "cpu-$form" val_loss)" "$(number "cuda-$form" val_loss)")" "and so is the gathered model's"
done
for device in cpu cuda; do
    fit_small "$device-norms" --device $device --model "$top_srcdir/tests/strategy/residual.json" --strategy hybrid --hybrid-form back --steps-per-epoch 4
done
ok "$(near "$(number cpu-norms loss)" "$(number cuda-norms loss)")" \
    "hybrid, back, with BatchNormalization of each rank's own pictures: the loss is the CPU's ($(number cpu-norms loss), $(number cuda-norms loss))"
ok "$(near "$(number cpu-norms val_loss)" "$(number cuda-norms val_loss)")" "and so is the gathered model's"
for way in powersgd:2 ${HPC_TRAIN_LONG:+topk:0.1}; do
    for device in cpu cuda; do
        fit_small "$device-$way" --device $device --allow-lossy --compress $way --compress-warmup 4
    done
    # what is left out depends on how the arena lies
    ok "$(awk -v a="$(number "cpu-$way" loss)" -v b="$(number "cuda-$way" loss)" 'BEGIN { d = a - b; print !(a > 0 && d < 5e-3 && d > -5e-3) }')" \
        "$way: the loss is near the CPU's ($(number "cpu-$way" loss), $(number "cuda-$way" loss))"
done
fit_small pipeline --device cuda --strategy pipeline --micro-batches 2 --global-batch-size 4
same_as_cpu pipeline
if [ -n "${HPC_TRAIN_LONG-}" ]; then # strategies in fp16, a minute of both cores
    fit_small three-in-fp16 --device cuda --precision fp16
    ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number three-in-fp16 loss)" 'BEGIN { d = a - b; print !(d < 0.02 && d > -0.02 && d != 0) }')" \
        "in fp16 near what it is in fp32 ($(number on-cpu loss), $(number three-in-fp16 loss))"
    like "$(<"$own/three-in-fp16.json")" '"precision": "mixed_float16"' "which the summary says"
    fit_small rows-in-fp16 --device cuda --model mnist-cnn --strategy hybrid --hybrid-form rows --steps-per-epoch 4 --epochs 1 --precision fp16
    near_in_fp16 cpu-rows rows-in-fp16
    for way in powersgd:2 topk:0.1; do
        fit_small "fp16-$way" --device cuda --precision fp16 --allow-lossy --compress $way --compress-warmup 4
        near_in_fp16 "cuda-$way" "fp16-$way"
    done
    for precision in fp32 fp16; do
        fit_small "local-$precision" --device cuda --precision $precision --learning-rate 0.001 --model "$own/synced.json" --strategy local-sgd --allow-lossy --local-steps 3
    done
    near_in_fp16 local-fp32 local-fp16
    # What stands before the steep layers has gradients that fp16 cannot hold until the scale is small enough, what comes
    # behind them never. All ranks leave out the same steps, those of one rank.
    low=(--device cuda --precision fp16 --global-batch-size 4)
    fit_small stages-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --micro-batches 1
    fit_small columns-in-fp16 "${low[@]}" --model "$own/flat.json" --strategy hybrid --hybrid-form columns
    fit_small sent-in-fp16 "${low[@]}" --model "$own/steep.json" --allow-lossy --compress powersgd:2 --compress-warmup 0
    fit_small gathering-stages-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --micro-batches 1 --gradient-accumulation 2
    several=("${ranks[@]}")
    ranks=("${ranks[@]/%3/4}") # two replicas of two stages
    fit_small stages-twice-in-fp16 "${low[@]}" --model "$own/steep.json" --strategy pipeline --stages 2 --micro-batches 1
    ranks=()
    fit_small steep-in-fp16 "${low[@]}" --model "$own/steep.json"
    fit_small flat-in-fp16 "${low[@]}" --model "$own/flat.json"
    fit_small gathering-in-fp16 "${low[@]}" --model "$own/steep.json" --gradient-accumulation 2
    ranks=("${several[@]}")
    for pair in "steep stages" "steep stages-twice" "gathering gathering-stages" "flat columns"; do
        read -r alone together <<<"$pair"
        same_as "$alone-in-fp16" "$together-in-fp16" "loss val_loss"
    done
    near_in_fp16 steep-in-fp16 sent-in-fp16 0.003
fi

# ---- with what stands in for NCCL: a step of all ranks is one recording ----
export HPC_TRAIN_TEST_NCCL=1 HPC_TRAIN_TEST_RECORDINGS=$own/with-nccl
# shellcheck disable=SC2016 # each rank expands
ranks+=(bash -c 'export NCCL_HOSTID=$OMPI_COMM_WORLD_RANK
    [ "$OMPI_COMM_WORLD_RANK" != "$CANNOT_RECORD" ] || export HPC_TRAIN_TEST_NO_RECORDING=1
    [ "$OMPI_COMM_WORLD_RANK" != "$MAY_NOT_RECORD" ] || export HPC_TRAIN_RECORD=0
    [ "$OMPI_COMM_WORLD_RANK" != "$IS_STUCK" ] || export HPC_TRAIN_TEST_REFUSES=stuck:1
    exec "$@"' rank)
fit_nccl nccl --device cuda --log-dir "$own/log-nccl"
same_as_cpu nccl
is "$(replays)" "3 19 replays" "a step of all ranks is one recording"
ok "$(python3 - "$own" <<'END'
import json, sys
one, three = ([json.loads(line) for line in open(f"{sys.argv[1]}/{d}/metrics.jsonl")] for d in ("log", "log-nccl"))
print(int(not (len(one) == len(three) == 20 and all(abs(a["loss"] - b["loss"]) < 2e-4 for a, b in zip(one, three)))))
END
)" "step by step"
sed 's/"drops"/"wide"/; /"Dropout"/d; s/"units": 16/"units": 300/' "$own/drops.json" >"$own/wide-layers.json"
fit_nccl chosen --device cuda --model "$own/wide-layers.json" --strategy auto --verbose 2 --steps-per-epoch 4
like "$out" 'strategy ([a-z-]+)( \([a-z]+\))?: [0-9.]+ ms a step; .*; 3 ranks are [a-zA-Z :]+ \([0-9.]+ times\)' \
    "auto measures, and says what"
like "$(grep 'ms a step' <<<"$out")" 'multi-worker-mirrored.*hybrid \(|hybrid \(.*multi-worker-mirrored' "hybrid, too, where gradients take long"
name=$(sed -n 's/^strategy \([a-z-]*\)[ :].*/\1/p' <<<"$out")
like "$(<"$own/chosen.json")" "\"strategy\": \"$name\"" "and takes the fastest ($name)"
several=("${ranks[@]}") ranks=()
fit_small wide --device cpu --model "$own/wide-layers.json" --steps-per-epoch 4
ranks=("${several[@]}")
same_as wide chosen
fit_nccl nccl-back --device cuda --model mnist-cnn --strategy hybrid --hybrid-form back --steps-per-epoch 4 --epochs 1
ok "$(near "$(number cpu-back loss)" "$(number nccl-back loss)")" "hybrid, back: the loss is the CPU's"
capture env IS_STUCK=1 HPC_TRAIN_STANDSTILL_SECONDS=2 "${ranks[@]}" "$train" fit "${steps[@]}" --strategy multi-worker-mirrored --epochs 2 --device cuda
is "$status" 69 "a GPU that does not go on ends all ranks"
is "$(grep -c "no rank has made progress for [2-4] s: all wait for their GPUs" <<<"$err")" 3 "and all say so" || diag "$err"
CANNOT_RECORD=1 fit_nccl one-cannot --device cuda
same_as_cpu one-cannot
is "$(replays)" "" "where one rank cannot, none does"
MAY_NOT_RECORD=2 fit_nccl one-may-not --device cuda
same_as_cpu one-may-not
is "$(replays)" "" "where one rank may not, none does"
fit_nccl with-timeline --device cuda --timeline "$own/timeline.json"
same_as_cpu with-timeline
like "$(<"$own/timeline.json")" reduction "a timeline shows the parts of a step"
is "$(cat "$own/with-nccl" 2>/dev/null)" "" "which then is none"
three=("${ranks[@]}") ranks=()
fit_small uneven-on-cpu --device cpu --global-batch-size 13
ranks=("${three[@]}")
fit_nccl uneven --device cuda --global-batch-size 13
same_as uneven-on-cpu uneven
is "$(replays)" "3 1 replays 3 5 replays" "and they are recorded, too"
for device in cpu cuda; do
    [ $device = cuda ] || ranks=()
    fit_nccl "norm-$device" --model "$own/norm.json" --device $device --sync-batch-norm --global-batch-size 13 --bucket-bytes 4096
    ranks=("${three[@]}")
done
same_as norm-cpu norm-cuda
fit_nccl on-the-wire --device cuda --wire bf16 --allow-lossy
ok "$(awk -v a="$(number on-cpu loss)" -v b="$(number on-the-wire loss)" 'BEGIN { d = a - b; print !(d < 0.01 && d > -0.01 && d != 0) }')" \
    "bf16 on the wire: near ($(number on-cpu loss), $(number on-the-wire loss))"
is "$(replays)" "3 19 replays" "in the recording"
# pictures FOLDER COUNT BAD HOW: PNGs of which that one is damaged: `cut`, or only its pixels; then they have two sizes, too, and
# are decoded for each step.
pictures() {
    python3 - "$own/$1" "${@:2}" <<'END'
import os, random, struct, sys, zlib
random.seed(5)
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
count, bad, cut = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "cut"
for i in range(count):
    side = 30 if i == 3 and not cut else 28
    rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(side)) for _ in range(side))
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    folder = f"{sys.argv[1]}/{i % 10}"
    os.makedirs(folder, exist_ok=True)
    if i == bad:
        whole = whole[:len(whole) // 2] if cut else whole[:200] + bytes([whole[200] ^ 255]) + whole[201:]
    open(f"{folder}/{i}.png", "wb").write(whole)
END
}
pictures cut 30 17 cut
sed 's/28, 28\]/28, 28, 3]/' "$own/drops.json" >"$own/colours.json"
coloured=(fit --model "$own/colours.json" --resize 28x28 --global-batch-size 6 --epochs 2 --seed 3 --device cuda)
capture "${ranks[@]}" "$train" "${coloured[@]}" --data "$own/cut"
is "$status" 65 "a damaged picture on one rank ends all, before the first step"
like "$err" "cut/7/17.png: it is damaged" "and it is named"
pictures damaged 120 45 pixels
rm -f "$own/with-nccl"
capture "${ranks[@]}" "$train" "${coloured[@]}" --data "$own/damaged" --strategy multi-worker-mirrored
is "$status" 65 "one that is found damaged between two recorded steps, too"
like "$err" "rank [0-2] \([^)]*\): [^ ]*damaged/5/45.png: it is damaged" "and the rank is named"
like "$(cat "$own/with-nccl")" " [1-9] replays" "which went on in company until then"

done_testing
