# tests/strategy/lib.sh - a training run by a strategy on several ranks under mpirun, compared with one rank that trains on
# the same global batch: losses step by step, and final weights. Sourced; not a test.
# shellcheck shell=bash
# shellcheck source=tests/build/lib.sh
. "${top_srcdir:?run this with make check}/tests/build/lib.sh"
: "${top_builddir:?run this with make check}"
command -v mpirun >/dev/null || skip_all "there is no mpirun"
work=$(mktemp -d /tmp/hpc-train-strategy.XXXXXX)
at_exit "rm -rf '$work'"
use_key "$work/key"
first_pictures "$work/pictures"
export OMP_NUM_THREADS=1 OMPI_MCA_btl=${OMPI_MCA_btl-self,vader} # of one machine: nothing else is looked for
steps=${HPC_TRAIN_LONG:+100}
steps=${steps:-12}
length=(--steps-per-epoch "$steps") # none: passes over 256 pictures, the last batch short
global_batch=42 # divisible by 2, 3 and 7, not by 4
# Smooth everywhere: where a ReLU is near 0 for all cells of a dark background, a rounding may turn them all.
residual=$top_srcdir/tests/strategy/residual.json
wide=$top_srcdir/tests/strategy/wide.json # most of its parameters in the last layers
over=mpi # what connects the ranks; tcp: without mpirun

# without_mpi RANKS COMMAND…: as ranks.sh says; what it leaves is in $work/apart.
without_mpi() {
    rm -rf "$work/apart"
    bash "$top_srcdir/tests/strategy/ranks.sh" "$work/apart" "$@"
}

# train RANKS NAME OPTION…: by multi-worker-mirrored where several ranks are to and nothing else is said. The losses of each
# step are then in $work/NAME/metrics.jsonl, the weights in $work/NAME.safetensors, the summary in $work/NAME.json; standard
# output and errors in $work/NAME.out. Its exit status.
train() {
    local launch=() strategy=() ranks=$1 name=$2
    shift 2
    [[ $ranks = 1 || " $* " == *" --strategy "* || " $* " == *" --replicas "* ]] || strategy=(--strategy multi-worker-mirrored)
    if [ "$over" = tcp ]; then
        launch=(without_mpi "$ranks" timeout --kill-after=5 300)
    elif [ "$ranks" = 1 ]; then
        launch=(limit 300)
    else
        launch=(limit 300 mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks")
    fi
    rm -rf "${work:?}/$name" "$work/$name.safetensors" "$work/$name.json"
    "${launch[@]}" "$hpc_train" fit --data "$work/pictures" "${length[@]}" \
        --global-batch-size $global_batch --seed 3 --learning-rate 0.001 --log-dir "$work/$name" --save-weights "$work/$name.safetensors" \
        --summary-json "$work/$name.json" --verbose 0 "${buckets[@]}" "${strategy[@]}" "$@" \
        >"$work/$name.out" 2>&1
}

# start_from OPTION…: leaves in $from what a run starts from, to be compared: weights of the model after 20 steps, and its learning
# rate. Not from weights just drawn: biases are 0 then, and where a picture is dark so is what a ReLU gets, in all cells at once;
# one rounding turns them all, and 100 steps later the biases of mnist-convnet differ by 1e-3 to 1e-2 between one rank with
# AVX-512 and the same with AVX2. From trained weights it is 1e-7. At larger rates a rounding grows from step to step until a
# hundred of them differ; momentum of 0.9 makes ten steps of one, and Adam's are as long as the rate.
from=()
start_from() {
    local model length=(--steps-per-epoch 20)
    [[ " $* " =~ \ --model\ ([^ ]+) ]] && model=${BASH_REMATCH[1]}
    if [ "${model:?}" != "$(cat "$work/start.model" 2>/dev/null)" ]; then
        from=()
        train 1 start --model "$model" --optimizer adam --learning-rate 0.01
        ok $? "20 steps of $model to start from" || diag "$(cat "$work/start.out")"
        echo "$model" >"$work/start.model"
    fi
    from=(--weights "$work/start.safetensors" --learning-rate 0.001)
    [[ ! " $* " =~ (--momentum|--optimizer) ]] || from[3]=0.0001
}

# reference OPTION…: what one rank makes of it, to compare with.
reference() {
    start_from "$@"
    train 1 one "$@" "${from[@]}"
    ok $? "one rank: $*" || diag "$(cat "$work/one.out")"
}

# same_as_one RANKS OPTION…: losses to 1e-4, weights to 1e-3 of the reference's.
same_as_one() {
    local ranks=$1
    shift
    train "$ranks" many "$@" "${from[@]}"
    ok $? "$ranks ranks: $*" || { diag "$(cat "$work/many.out")"; return 1; }
    same_results "$ranks ranks, $*"
}

# same_results WHAT: the runs `one` and `many` have the same losses, to 1e-4, and weights, to 1e-3 of their norm; and to 1e-2 of the
# norm of what training has changed, beside which fp32 is coarser.
same_results() {
    local losses weights
    losses=$(losses_differ one many)
    ok "$(awk -v d="$losses" 'BEGIN { print !(d != "" && d + 0 <= 1e-4) }')" "$1: the losses of $steps steps are one rank's (to ${losses:-?})"
    weights=$("$top_builddir/tests/strategy/compare_weights" "$work/one.safetensors" "$work/many.safetensors" "$work/start.safetensors")
    ok "$(awk '{ print !(NF == 2 && $1 <= 1e-3 && $2 <= 1e-2) }' <<<"$weights")" "$1: the weights are one rank's (to ${weights:-?}, of all and of the change)"
}

# losses_differ A B: the largest relative difference between the losses of two runs; nothing when they are of different steps.
losses_differ() {
    paste -d' ' "$work/$1/metrics.jsonl" "$work/$2/metrics.jsonl" | tr -d '{},":' | awk -v steps="$steps" '
        { a = $6; b = $14; if ($2 != $10 || $4 != $12 || a + 0 != a || b + 0 != b || a == 0) bad = 1
          d = (a - b) / a; if (d < 0) d = -d; if (d > worst) worst = d }
        END { if (!bad && NR == steps) print worst + 0 }'
}

# field NAME KEY: a number or word of the run's summary.
field() { sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/$1.json" | head -n 1; }

# process_of NAME RANK: the process that mpirun started as this rank of the run that saves $work/NAME.safetensors.
process_of() {
    local process
    # One grep for all: one for each takes seconds on a busy machine.
    for process in $(grep -lszx "OMPI_COMM_WORLD_RANK=$2" /proc/[0-9]*/environ); do # some end meanwhile
        process=${process%/environ}
        if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q "$work/$1.safetensors"; then
            echo "${process#/proc/}"
            return
        fi
    done
}

# stops_together: SIGTERM to rank 1 of two, with the options in `strategy`.
stops_together() {
    local launcher
    timeout 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$hpc_train" fit --model mnist-cnn \
        --data "$work/pictures" --epochs 100000 --global-batch-size 42 --verbose 2 "${strategy[@]}" \
        --save-weights "$work/stopped.safetensors" >"$work/stopped.out" 2>&1 &
    launcher=$!
    for _ in $(seq 600); do
        grep -q "Epoch 2/" "$work/stopped.out" && break
        sleep 0.1
    done
    kill -TERM "$(process_of stopped 1)"
    wait $launcher
    is "$?" 143 "SIGTERM to one rank stops both"
    like "$(cat "$work/stopped.out")" "stopped by SIGTERM after step [0-9]+, in epoch" "both name the signal"
    ok "$([ -s "$work/stopped.safetensors" ]; echo $?)" "and save the weights"
}
