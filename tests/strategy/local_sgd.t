#!/bin/bash
# local_sgd.t: with an average after every step it is data parallelism; with fewer it sends that much less and still trains;
# all ranks stop together.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
lossy=(--strategy local-sgd --allow-lossy)
reference --model mnist-convnet
same_as_one 2 --model mnist-convnet "${lossy[@]}" --local-steps 1
reference --model "$residual" --sync-batch-norm
same_as_one 4 --model "$residual" --sync-batch-norm "${lossy[@]}" --local-steps 1 --local-warmup-steps 0
same_as_one 3 --model "$residual" --sync-batch-norm "${lossy[@]}" --local-warmup-steps 1000
reference --model mnist-convnet --momentum 0.9
same_as_one 2 --model mnist-convnet --momentum 0.9 "${lossy[@]}" --local-steps 1

# ---- fewer averages: after steps 1 (warm-up), 5, 9 and 10 (the end of an epoch) of 10 ----
train 2 four --model mnist-convnet --steps-per-epoch 10 "${lossy[@]}" --local-steps 4 --local-warmup-steps 1
is "$(sed -n 's/.*"step": *\([0-9]*\).*/\1/p' "$work/four/metrics.jsonl" | tr '\n' ' ')" "1 5 9 10 " "losses are known after each average"
train 2 all --model mnist-convnet --steps-per-epoch 10 "${lossy[@]}" --local-steps 1
sent=$(field four bytes_sent_per_step) every=$(field all bytes_sent_per_step)
ok "$(awk -v a="$sent" -v b="$every" 'BEGIN { print !(a > 0.399 * b && a < 0.401 * b) }')" "4 averages in 10 steps send 4 tenths ($sent of $every)"
ok "$(awk -v a="$(field four loss)" -v b="$(field all loss)" 'BEGIN { d = a - b; print !(a > 0 && d != 0 && d * d < 0.01 * b * b) }')" "the mean loss is close"

# ---- timed by whole rounds, of which one step has the average ----
limit 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$top_builddir/hpc-train" bench --model mnist-convnet \
    --batch-size 8 --steps 20 "${lossy[@]}" --summary-json "$work/bench.json" >"$work/bench.out" 2>&1
ok $? "bench" || diag "$(cat "$work/bench.out")"
is "$(field bench steps)" 24 "20 steps are three rounds of 8"

# ---- refusals ----
train 2 refused --model mnist-convnet --strategy local-sgd
is "$?" 64 "without --allow-lossy: an error"
like "$(cat "$work/refused.out")" "give --allow-lossy as well" "that names the option"
train 2 refused --model mnist-convnet --strategy multi-worker-mirrored --local-steps 4
is "$?" 64 "--local-steps is for local-sgd alone"
done_testing
