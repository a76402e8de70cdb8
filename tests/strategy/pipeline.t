#!/bin/bash
# pipeline.t: a model in stages on different ranks, through which micro-batches pass, gives the losses and weights of one rank
# on the same global batch; with BatchNormalization those of one rank that accumulates the gradients of the micro-batches.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
strategy=(--strategy pipeline)
long=${HPC_TRAIN_LONG-}

# accumulating MICRO-BATCHES OPTION…: what one rank makes of so many batches for each update; step by step, as `reference`.
accumulating() {
    local pieces=$1
    shift
    start_from "$@"
    train 1 pieces "${from[@]}" --global-batch-size $((global_batch / pieces)) --gradient-accumulation "$pieces" "$@" --steps-per-epoch $((pieces * steps))
    ok $? "one rank, $pieces batches an update: $*" || diag "$(cat "$work/pieces.out")"
    mkdir -p "$work/one"
    mv "$work/pieces.safetensors" "$work/one.safetensors"
    tr -d '{},":' <"$work/pieces/metrics.jsonl" | awk -v k="$pieces" '
        { loss += $6 } NR % k == 0 { printf "{\"epoch\": 1, \"step\": %d, \"loss\": %.9g, \"accuracy\": 0}\n", NR / k, loss / k; loss = 0 }' >"$work/one/metrics.jsonl"
}

# ---- W1: three operations, so three stages at most ----
reference --model mnist-cnn
for ranks in ${long:+2} 3; do
    same_as_one "$ranks" --model mnist-cnn "${strategy[@]}" --timeline "$work/trace.json"
done
# Values of a sample go forward, as many gradients back: the convolution's 26 x 26 x 32, the first Dense's 128; the sums of a
# step are 6; in fp32, on average over the ranks.
is "$(field many bytes_sent_per_step)" $((4 * (2 * global_batch * (26 * 26 * 32 + 128) + 3 * 6) / 3)) "each boundary's activations and gradients are sent"
# order RANK: of forwards and backwards in step 3.
order() {
    sed -n "s/.*\"pid\": $1, .*\"name\": \"\([fb]\)[a-z]* of micro-batch \([0-9]*\)\", \"args\": {\"step\": 3}.*/\1\2/p" "$work/trace.json" | paste -sd' '
}
is "$(order 0)" "f0 f1 f2 b0 f3 b1 f4 b2 f5 b3 f6 b4 f7 b5 b6 b7" "the first stage goes as many micro-batches ahead as there are stages behind it"
is "$(order 2)" "f0 b0 f1 b1 f2 b2 f3 b3 f4 b4 f5 b5 f6 b6 f7 b7" "the last one has each backward right behind its forward"
is "$(field many strategy)" pipeline "the summary names the strategy"
if [ -n "$long" ]; then
    same_as_one 4 --model mnist-cnn "${strategy[@]}" --stages 2 --micro-batches 5 # replicas, pieces of 4 and 5
    same_as_one 3 --model mnist-cnn "${strategy[@]}" --micro-batches 1
    same_as_one 3 --model mnist-cnn "${strategy[@]}" --micro-batches $global_batch
    same_as_one 6 --model mnist-cnn "${strategy[@]}"
    # Without momentum: at ten times the rate a rounding, here of a convolution that reads another layout at a border, grows
    # a hundredfold in a hundred steps.
    reference --model mnist-convnet
    for ranks in 2 3 4 6; do
        same_as_one "$ranks" --model mnist-convnet "${strategy[@]}"
    done
    reference --model "$top_srcdir/tests/strategy/random.json" # Dropout draws for the whole batch
    same_as_one 3 --model "$top_srcdir/tests/strategy/random.json" "${strategy[@]}"
fi

# ---- branches, which cuts go through, and BatchNormalization, which is over a micro-batch ----
accumulating 6 --model "$residual" --optimizer adam
for ranks in ${long:+1 2 3 7} 4; do
    same_as_one "$ranks" --model "$residual" --optimizer adam "${strategy[@]}" --micro-batches 6
done

# ---- a short last batch, and evaluation: 256 pictures in batches of 42, the last of 4, which not every replica has one of ----
steps=7 length=()
epoch=(--validation-data "$work/pictures")
reference --model mnist-cnn "${epoch[@]}"
same_as_one 10 --model mnist-cnn "${epoch[@]}" "${strategy[@]}" --stages 2 --micro-batches 3
differs=$(paste -d' ' <(field one val_loss) <(field many val_loss) | awk '{ d = ($1 - $2) / $1; if ($1 > 0) print d < 0 ? -d : d }')
ok "$(awk -v d="$differs" 'BEGIN { print !(d ~ /^[0-9]/ && d <= 1e-4) }')" "validation gives one rank's loss (to $differs)"

# ---- memory that has no room for the whole model, as the Slurm job was given ----
if [ -n "$long" ]; then
    layers='{"class_name": "InputLayer", "config": {"batch_shape": [null, 28, 28], "name": "input"}}, {"class_name": "Flatten", "config": {"name": "flatten"}}'
    for i in 1 2 3 4; do
        layers+=", {\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden$i\", \"units\": 1200, \"activation\": \"relu\"}}"
    done
    layers+=', {"class_name": "Dense", "config": {"name": "last", "units": 10, "activation": "softmax"}}'
    echo "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"deep\", \"layers\": [$layers]}}" >"$work/deep.json"
    bench() { # MEBIBYTES-OF-THE-NODE
        limit 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 env SLURM_STEP_ID=0 SLURM_MEM_PER_NODE="$1" \
            "$top_builddir/hpc-train" bench --model "$work/deep.json" --momentum 0.9 --batch-size 8 --steps 2 2>&1
    }
    out=$(bench 1)
    if [[ $out != *"Slurm job, shared by 4 ranks"* ]]; then
        skip "auto takes what fits" "the memory of this process has a limit of its own"
    else
        like "$(bench 450)" "strategy pipeline: the memory has no room for the whole model" "auto takes what fits"
    fi
fi

# ---- a stop signal to one rank ends all after the same step ----
stops_together

# ---- what cannot be ----
steps=1 length=(--steps-per-epoch 1)
refused() { # RANKS STATUS MESSAGE OPTION…
    local ranks=$1 expected=$2 message=$3
    shift 3
    train "$ranks" none --model mnist-cnn "$@"
    is "$?" "$expected" "refused: $ranks ranks, $*"
    like "$(cat "$work/none.out")" "$message" "the error says why"
}
refused 4 78 "4 ranks cannot share 3 stages evenly" "${strategy[@]}" --stages 3
refused 1 78 "--stages is 4, but model mnist-cnn has 3 operations" "${strategy[@]}" --stages 4
refused 1 64 "--stages and --micro-batches are for strategy pipeline" --strategy hybrid --micro-batches 2
if [ -n "$long" ]; then
    refused 7 78 "no divisor of 7 ranks but 1" "${strategy[@]}"
    refused 2 78 "cannot be cut into 43 micro-batches" "${strategy[@]}" --micro-batches 43
    refused 2 78 "global_clipnorm needs the norm of all gradients" "${strategy[@]}" --global-clip-norm 1
fi
done_testing
