#!/bin/bash
# tcp.t: ranks that no MPI connects train as over MPI, by every strategy: with the same weights bit by bit, where nothing is added
# up in another order.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"

# same_over_both RANKS BITS OPTION…: BITS: the weights are compared bit by bit; else losses to 1e-5.
same_over_both() {
    local ranks=$1 bits=$2 what=("${@:3}")
    over=mpi train "$ranks" mpi "${what[@]}" --comm mpi
    ok $? "$ranks ranks over MPI: ${what[*]//$top_srcdir\//}" || diag "$(cat "$work/mpi.out")"
    over=tcp train "$ranks" tcp "${what[@]}"
    ok $? "over TCP" || diag "$(cat "$work/tcp.out")"
    is "$(field tcp strategy)" "$(field mpi strategy)" "with the same strategy"
    if [ "$bits" = bits ]; then
        is "$(cmp "$work/mpi/metrics.jsonl" "$work/tcp/metrics.jsonl" 2>&1)" "" "identical losses"
        is "$(cmp "$work/mpi.safetensors" "$work/tcp.safetensors" 2>&1)" "" "identical weights"
    else
        is "$(awk -v d="$(losses_differ mpi tcp)" 'BEGIN { print d != "" && d + 0 <= 1e-5 }')" 1 "the same losses (to $(losses_differ mpi tcp))"
    fi
}

mirrored=(--strategy multi-worker-mirrored --model mnist-convnet)
same_over_both 2 bits "${mirrored[@]}"
same_over_both 3 bits "${mirrored[@]}" --bucket-bytes 40000
same_over_both 3 bits "${mirrored[@]}" --allow-lossy --wire bf16
same_over_both 2 bits "${mirrored[@]}" --allow-lossy --compress powersgd:2 --compress-warmup 3
same_over_both 3 near --strategy multi-worker-mirrored --model "$residual" --sync-batch-norm
same_over_both 3 near --strategy hybrid --hybrid-form rows --model mnist-convnet
same_over_both 2 bits --strategy hybrid --hybrid-form back --model "$wide" --sync-batch-norm
same_over_both 2 bits --strategy local-sgd --allow-lossy --local-steps 1 --model mnist-convnet
same_over_both 2 bits --strategy mirrored --replicas 2 --model mnist-convnet
same_over_both 3 bits --strategy pipeline --micro-batches 3 --model mnist-convnet
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    same_over_both 2 bits "${mirrored[@]}" --bucket-bytes 400000 --model mnist-cnn
    same_over_both 2 bits "${mirrored[@]}" --allow-lossy --compress topk:0.01 --compress-warmup 3
    same_over_both 2 bits --strategy multi-worker-mirrored --model "$residual" --sync-batch-norm
    for form in rows columns; do same_over_both 3 near --strategy hybrid --hybrid-form $form --model mnist-cnn; done
    same_over_both 4 near --strategy pipeline --stages 2 --micro-batches 6 --model "$residual" --sync-batch-norm
    same_over_both 1 bits --strategy central-storage --replicas 2 --model mnist-convnet # in one process alone
fi

# Which strategy is taken depends on the time that each takes.
over=tcp train 3 auto --model mnist-convnet --strategy auto
ok $? "auto" || diag "$(cat "$work/auto.out")"

# ---- what is said, and what cannot be ----
few=("$hpc_train" fit --data "$work/pictures" --model mnist-convnet --strategy multi-worker-mirrored "${buckets[@]}" --steps-per-epoch 2 --verbose 2)
out=$(without_mpi 2 "${few[@]}")
is "$?" 0 "automatically, if no launcher has set up MPI"
like "$out" $'2 ranks, .*\nranks are connected by TCP, not MPI: the launcher offers no PMIx\n' "it is printed, with the reason"
is "$(grep -c connected <<<"$out")" 1 "once"
out=$(without_mpi 2 "${few[@]}" --comm tcp)
like "$out" "connected by TCP, not MPI: --comm tcp" "as requested"
out=$(without_mpi 2 "${few[@]}" --verbose 0)
unlike "$out" "connected" "with --verbose 0 nothing is printed"
out=$(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "${few[@]}" 2>&1)
is "$?" 0 "over MPI if mpirun has set it up"
unlike "$out" "connected by TCP" "nothing is printed then"
out=$(without_mpi 2 "${few[@]}" --comm mpi)
is "$?" 78 "--comm mpi, where MPI knows of one rank: 78"
like "$out" "hpc-train: MPI sees no other rank \(the launcher offers no PMIx\), but the job has 2: take srun --hpc-train, or srun --mpi=pmix" "the error says what to do"
out=$(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "${few[@]}" --comm tcp 2>&1)
is "$?" 78 "--comm tcp without addresses: 78"
like "$out" "hpc-train: --comm tcp: nobody said where the ranks listen: start them with srun --hpc-train" "the error says what to do"
out=$("${few[@]}" --comm ucx 2>&1)
is "$?" 64 "an unknown value is an error"
like "$out" "hpc-train: --comm: 'ucx' is unknown; there are: auto, mpi, tcp" "the error lists the values"
done_testing
