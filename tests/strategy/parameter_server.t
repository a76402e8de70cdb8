#!/bin/bash
# parameter_server.t: servers and workers as processes on this host, each with a config of its own: synchronous training is
# that of one rank, asynchronous training converges within its bound, workers may be lost and come late, servers may not.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
export HPC_TRAIN_JOIN_SECONDS=60

# begin NAME SERVERS WORKERS: nobody has been started yet; `start` does. Ports that nobody listens on.
begin() {
    local port=$((21000 + RANDOM % 1800)) i
    name=$1 servers=$2 workers=$3
    cluster='"ps":[' pids=()
    for ((i = 0; i < servers; port++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue; fi
        cluster+="$([ $i = 0 ] || echo ,)\"127.0.0.1:$port\"" i=$((i + 1))
    done
    cluster+='],"worker":['
    for ((i = 0; i < workers; i++)); do cluster+="$([ $i = 0 ] || echo ,)\"127.0.0.1:$((port + 100 + i))\""; done
    cluster+=']'
    rm -rf "${work:?}/$name" "$work/$name.safetensors" "$work/$name.json" "$work/$name".*.out
}

# start ROLE INDEX OPTION…: in the background; its pid is then in ${pids[ROLE.INDEX]}'s place, what it says in $work/NAME.ROLE.INDEX.out.
declare -A pid_of
start() {
    local role=$1 index=$2 rank=$2 writes=()
    shift 2
    [ "$role" = ps ] || rank=$((servers + index))
    [ "$role$index" != ps0 ] || writes=(--log-dir "$work/$name" --save-weights "$work/$name.safetensors" --summary-json "$work/$name.json")
    HPC_TRAIN_CONFIG="{\"version\":1,\"job\":\"$$.$name\",\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index},\"rank\":$rank,
        \"local_rank\":$rank,\"node_rank\":0,\"nodes\":[{\"name\":\"here\",\"tasks\":$((servers + workers)),\"gpus\":0}]}" \
        timeout --foreground --kill-after=5 120 "$hpc_train" fit --strategy parameter-server --data "$work/pictures" --seed 3 --learning-rate 0.001 \
        --verbose 2 "${writes[@]}" "$@" >"$work/$name.$role.$index.out" 2>&1 &
    pid_of[$role$index]=$!
    pids+=($!)
}

# start_all OPTION…: all servers and workers.
start_all() {
    local i
    for ((i = 0; i < servers; i++)); do start ps $i "$@"; done
    for ((i = 0; i < workers; i++)); do start worker $i "$@"; done
}

# finish: waits for all; 0 when all ended with 0. The statuses are then in $statuses.
finish() {
    local pid worst=0
    statuses=
    for pid in "${pids[@]}"; do
        wait "$pid" 2>/dev/null
        statuses+="$? "
    done
    for pid in $statuses; do [ "$pid" = 0 ] || worst=1; done
    return $worst
}
said() { cat "$work/$name".*.out; }

# the program below `timeout`, to be killed or stopped
program_of() { pgrep -P "${pid_of[$1]}"; }

# begun EPOCH: waits until server 0 says that this epoch has begun.
begun() {
    local i
    for ((i = 0; i < 600; i++)); do
        ! grep -q "^Epoch $1/" "$work/$name.ps.0.out" 2>/dev/null || return 0
        sleep 0.05
    done
    return 1
}

# same SERVERS WORKERS OPTION…: losses to 1e-4, weights to 1e-3 of the reference's.
same() {
    local servers_=$1 workers_=$2
    shift 2
    begin many "$servers_" "$workers_"
    start_all --steps-per-epoch "$steps" --global-batch-size $global_batch --ps-sync "$@" "${from[@]}"
    finish
    ok $? "$servers servers, $workers workers: $*" || { diag "$statuses" "$(said)"; return 1; }
    same_results "$servers servers, $workers workers, $*"
}

# ---- synchronous: one rank's result ---------------------------------------------------------------------------------
reference --model mnist-convnet --momentum 0.9 --epochs 2 --initial-epoch 1
same 1 2 --model mnist-convnet --momentum 0.9 --epochs 2 --initial-epoch 1
like "$(cat "$work/many.ps.0.out")" $'(^|\n)Epoch 2/2\n' "--initial-epoch: the second epoch is the first to be trained"
unlike "$(cat "$work/many.ps.0.out")" "Epoch 1/2" "the only epoch printed"
reference --model mnist-convnet --momentum 0.9
same 1 1 --model mnist-convnet --momentum 0.9
same 2 2 --model mnist-convnet --momentum 0.9
same 2 3 --model mnist-convnet --momentum 0.9 --backup-workers 1
reference --model mnist-convnet --augment rotation:0.1,mixup:0.4
same 1 2 --model mnist-convnet --augment rotation:0.1,mixup:0.4
# Weights of frozen layers are those that all have begun with; a normalization of one has no statistics to send.
frozen=(--model "$residual" --freeze 'stem,block0_*,block1_norm,norm')
reference "${frozen[@]}"
same 2 2 "${frozen[@]}"
# Servers add the penalties of weights, once in an update; workers have them in their losses.
sed 's/"\(kernel\|bias\|gamma\)_regularizer": null/"\1_regularizer": {"class_name": "L1L2", "config": {"l1": 0.002, "l2": 0.01}}/' \
    "$residual" >"$work/penalized-model.json"
penalized=(--model "$work/penalized-model.json" --freeze 'stem,block0_*,block1_norm,norm')
reference "${penalized[@]}"
same 2 2 "${penalized[@]}"
begin frozen 1 1
start_all "${frozen[@]}" --ps-sync --steps-per-epoch 4 --checkpoint-dir "$work/ckpt-frozen"
finish
ok $? "a checkpoint of them" || diag "$statuses" "$(said)"
begin frozen 1 1
HPC_TRAIN_JOIN_SECONDS=10 start_all "${frozen[@]}" --ps-sync --steps-per-epoch 4 --epochs 2 --checkpoint-dir "$work/ckpt-frozen" "${from[@]}"
finish
is "${statuses%% *}" 78 "which is not continued from other weights of frozen layers"
like "$(said)" "has other weights of frozen layers than this run began with: give the --weights and --seed" "the error says so"
echo '{"0": 5, "3": 0, "9": 0.5}' >"$work/weights.json"
weighted=(--model mnist-convnet --class-weight "$work/weights.json" --loss categorical_focal_crossentropy)
reference "${weighted[@]}"
same 1 2 "${weighted[@]}"

# ---- asynchronous ---------------------------------------------------------------------------------------------------
begin async 2 2
start_all --model mnist-cnn --learning-rate 0.05 --batch-size 32 --epochs 6 --validation-data "$work/pictures" --max-staleness 3
finish
ok $? "asynchronous, 2 servers, 2 workers" || diag "$statuses" "$(said)"
ok "$(awk -v l="$(field async loss)" 'BEGIN { print !(l != "" && l < 1.9) }')" "it converges: the loss of the 6th epoch is $(field async loss)"
ok "$(awk -v s="$(field async staleness_largest)" 'BEGIN { print !(s != "" && s <= 3) }')" "within the bound: staleness is $(field async staleness_largest) at most"
is "$(field async gradients) $(field async steps)" "48 48" "every batch of every epoch was applied"
like "$(field async val_loss)" '^[0-9]' "and the epochs are evaluated: val_loss is $(field async val_loss)"

# ---- workers come and go --------------------------------------------------------------------------------------------
reference --model mnist-convnet --momentum 0.9
for _ in {1..8}; do # once more if the run was faster than the look at it
    begin many 2 2
    start ps 0 --ps-sync --steps-per-epoch "$steps" --global-batch-size $global_batch --model mnist-convnet --momentum 0.9 "${from[@]}"
    start ps 1 --ps-sync --steps-per-epoch "$steps" --global-batch-size $global_batch --model mnist-convnet --momentum 0.9 "${from[@]}"
    start worker 0 --ps-sync --steps-per-epoch "$steps" --global-batch-size $global_batch --model mnist-convnet --momentum 0.9 "${from[@]}"
    begun 1
    start worker 1 --ps-sync --steps-per-epoch "$steps" --global-batch-size $global_batch --model mnist-convnet --momentum 0.9 "${from[@]}"
    kill -KILL "$(program_of worker0)"
    finish
    [ "$statuses" = "0 0 0 0 " ] || break
done
is "$statuses" "0 0 137 0 " "a worker is killed and one joins late: the others continue" || diag "$(said)"
losses=$(losses_differ one many)
ok "$(awk -v d="$losses" 'BEGIN { print !(d != "" && d + 0 <= 1e-4) }')" "with the losses of one rank (to ${losses:-?})"
is "$(field many workers_lost)" 1 "the summary has the lost worker"
like "$(said)" 'worker 0 on here was lost: its connection closed' "the error names the worker"

# ---- servers may not ------------------------------------------------------------------------------------------------
# loses SERVER SIGNAL REGEX: all others end with 69 within 30 s, and name it.
loses() {
    local i began
    begin fatal 2 2
    start_all --model mnist-cnn --batch-size 8 --epochs 1000
    begun 2
    kill "-$2" "$(program_of "ps$1")"
    began=$SECONDS
    for i in ps0 ps1 worker0 worker1; do
        [ $i != "ps$1" ] || continue
        wait "${pid_of[$i]}"
        is $? 69 "server $1 gets SIG$2: $i ends with 69"
        like "$(cat "$work/fatal.${i:0:-1}.${i: -1}.out")" "$3" "the error names it"
    done
    ok $((SECONDS - began > 100)) "soon ($((SECONDS - began)) s; on a quiet machine within 30 s)"
    kill -KILL "$(program_of "ps$1")" 2>/dev/null
    wait "${pid_of[ps$1]}" 2>/dev/null
}
loses 1 KILL 'parameter server 1 on 127.0.0.1:[0-9]* was lost: its connection closed'
loses 0 KILL 'parameter server 0 on 127.0.0.1:[0-9]* was lost: its connection closed'
loses 1 STOP 'parameter server 1 on 127.0.0.1:[0-9]* was lost: no heartbeat'
if [ -n "${HPC_TRAIN_LONG-}" ]; then loses 0 STOP 'parameter server 0 on 127.0.0.1:[0-9]* was lost: no heartbeat'; fi

# ---- checkpoints ----------------------------------------------------------------------------------------------------
# Kept between runs: the name's folder; `begin` would remove it.
go_on() { pids=() && start_all "$@" && finish; }
# close A B: largest difference of their losses, relative; nothing if they are not of the same steps
close() {
    python3 - "$work/$1/metrics.jsonl" "$work/$2/metrics.jsonl" <<'END'
import json, sys
one, two = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
if [(r["epoch"], r["step"]) for r in one] == [(r["epoch"], r["step"]) for r in two]:
    print(max(abs(a["loss"] - b["loss"]) / a["loss"] for a, b in zip(one, two)))
END
}
near_to() { awk -v d="$1" 'BEGIN { print !(d != "" && d + 0 <= 1e-4) }'; }
reference --model mnist-convnet --momentum 0.9 # makes start.safetensors
whole=(--model mnist-convnet --momentum 0.9 --ps-sync --steps-per-epoch 50 --epochs 5 --global-batch-size "$global_batch" "${from[@]}" --validation-data "$work/pictures")
begin whole 2 2
start_all "${whole[@]}"
finish
ok $? "a run that nothing stops" || diag "$statuses" "$(said)"
for _ in {1..8}; do # once more if it was faster than the look at it
    begin cut 2 2
    rm -rf "$work/ckpt"
    start_all "${whole[@]}" --checkpoint-dir "$work/ckpt" --checkpoint-every epoch
    begun 3
    kill -KILL "$(program_of ps1)"
    finish
    [ ! -e "$work/ckpt/step-0000000250" ] || continue
    break
done
cp -r "$work/ckpt" "$work/ckpt-one"
go_on "${whole[@]}" --checkpoint-dir "$work/ckpt"
ok $? "after a server was lost the run continues from its checkpoint" || diag "$statuses" "$(said)"
like "$(cat "$work/cut.ps.0.out")" "continues $work/ckpt/step-0*[0-9]+: [1-4] of 5 epochs are done" "it says from where"
apart=$(close whole cut)
ok "$(near_to "$apart")" "each step is logged once, with the loss of the uncut run (to ${apart:-?})"
is "$(wc -l <"$work/cut/history.csv")" 6 "history.csv has each epoch once"
weights=$("$top_builddir/tests/strategy/compare_weights" "$work/whole.safetensors" "$work/cut.safetensors" "$work/start.safetensors")
ok "$(awk '{ print !(NF == 2 && $1 <= 1e-3 && $2 <= 1e-2) }' <<<"$weights")" "with its weights (to ${weights:-?}, of all and of the change)"
# Within an epoch: a stop saves after the step under way; a killed server loses what is after the last checkpoint.
logged() { # STEPS
    for _ in {1..600}; do
        [ "$(cat "$work/$name/metrics.jsonl" 2>/dev/null | wc -l)" -lt "$1" ] || return 0
        sleep 0.02
    done
}
for _ in {1..8}; do # once more if it was at the end of an epoch, or beyond the second
    begin within 2 2
    rm -rf "$work/ckpt-within"
    start_all "${whole[@]}" --checkpoint-dir "$work/ckpt-within"
    begun 2
    kill -TERM "$(program_of ps0)"
    finish
    last=$(find "$work/ckpt-within" -name 'step-*' -printf '%f\n' | sort | tail -n 1)
    if [ $((10#${last#step-} % 50)) != 0 ] && [ $((10#${last#step-})) -lt 100 ]; then break; fi
done
is "$statuses" "75 75 75 75 " "SIGTERM to server 0 within an epoch: all end with 75" || diag "$(said)"
like "$(said)" "stopped by SIGTERM after step [0-9]+" "it says after which step"
cp -r "$work/ckpt-within" "$work/ckpt-stopped"
cp -r "$work/within" "$work/within-stopped"
for _ in {1..8}; do # likewise
    rm -rf "$work/ckpt-within" "$work/within"
    cp -r "$work/ckpt-stopped" "$work/ckpt-within"
    cp -r "$work/within-stopped" "$work/within"
    pids=()
    start_all "${whole[@]}" --checkpoint-dir "$work/ckpt-within" --checkpoint-every 7
    logged $((10#${last#step-} + 25))
    kill -KILL "$(program_of ps1)"
    finish
    cut=$(find "$work/ckpt-within" -name 'step-*' -printf '%f\n' | sort | tail -n 1)
    if [ $((10#${cut#step-} % 50)) != 0 ] && [ $((10#${cut#step-})) -lt 250 ]; then break; fi
done
like "$(cat "$work/within.ps.0.out")" "continues $work/ckpt-within/step-0*[0-9]+: [1-3] of 5 epochs are done, and [1-9][0-9]* steps of the next" \
    "the next run goes on from that step"
cp -r "$work/ckpt-within" "$work/ckpt-other"
cp -r "$work/within" "$work/other"
go_on "${whole[@]}" --checkpoint-dir "$work/ckpt-within"
ok $? "so does the one after a server is killed" || diag "$statuses" "$(said)"
is "$(python3 -c 'import json, sys; print(*[s.get("state") for s in json.load(open(sys.argv[1]))["starts"]])' "$work/within/run.json")" "stopped failed None" \
    "run.json knows how each start ended"
like "$(cat "$work/within.ps.0.out")" "continues $work/ckpt-within/step-0*[0-9]+: [0-9] of 5 epochs are done, and [1-9][0-9]* steps of the next" \
    "also within an epoch"
apart=$(close whole within)
ok "$(near_to "$apart")" "each step is logged once, with the loss of the uncut run (to ${apart:-?})"
is "$(cut -d, -f1-3 "$work/within/history.csv" | grep -c .)" 6 "history.csv has each epoch once"
is "$(paste -d, "$work/whole/history.csv" "$work/within/history.csv" |
    awk -F, 'NR > 1 { for (i = 2; i <= 3; i++) if (($i - $(i + NF / 2)) ^ 2 > ($i * 2e-4) ^ 2) print }')" "" "and the means of whole epochs" ||
    diag "$(cat "$work/whole/history.csv" "$work/within/history.csv")"
"$hpc_train" fit --strategy multi-worker-mirrored --data "$work/pictures" --seed 3 --verbose 2 "${whole[@]/--ps-sync/--seed=3}" \
    --log-dir "$work/other" --checkpoint-dir "$work/ckpt-other" >"$work/other.one.0.out" 2>&1
ok $? "another strategy goes on from within an epoch" || diag "$(cat "$work/other.one.0.out")"
apart=$(close whole other)
ok "$(near_to "$apart")" "with the losses of the uncut run (to ${apart:-?})"
# The job ends while it trains, slowly, for the sake of others.
begin late 2 2
export SLURM_JOB_ID=$$ HPC_TRAIN_END_TIME=$(($(date +%s) + 40))
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$top_builddir/tests/cluster/.libs/slow_steps.so \
    start_all --model mnist-convnet --ps-sync --epochs 100000 --checkpoint-dir "$work/ckpt-late"
finish
unset SLURM_JOB_ID HPC_TRAIN_END_TIME
is "$statuses" "75 75 75 75 " "near the end of the job all end with 75" || diag "$(said)"
like "$(said)" "epochs take about [0-9.]+ (min|h), and the job ends in [0-9]+ s: training will stop with a checkpoint in epoch [0-9]+ of 100000" \
    "server 0 has said so"
like "$(said)" "stopped by the job's time limit after step [0-9]+" "and why it stops"
begin fewer 1 1
cp -r "$work/cut" "$work/fewer"
start_all "${whole[@]}" --checkpoint-dir "$work/ckpt-one"
finish
ok $? "one server and one worker go on from two" || diag "$statuses" "$(said)"
apart=$(close whole fewer)
ok "$(near_to "$apart")" "with the losses of the uncut run (to ${apart:-?})"
begin again 2 2
start_all "${whole[@]}" --checkpoint-dir "$work/ckpt"
finish
is "$statuses$(cmp "$work/cut.safetensors" "$work/again.safetensors" 2>&1)" "0 0 0 0 " "a run that is finished has nothing left to train" || diag "$(said)"
"$hpc_train" fit --strategy multi-worker-mirrored --data "$work/pictures" --seed 3 --verbose 2 --model mnist-convnet --momentum 0.9 \
    --steps-per-epoch 50 --epochs 6 --global-batch-size $global_batch "${from[@]}" --checkpoint-dir "$work/ckpt" >"$work/again.one.0.out" 2>&1
ok $? "another strategy trains a further epoch" || diag "$(said)"
like "$(said)" "5 of 6 epochs are done" "from the same checkpoint"
many=(--model mnist-convnet --ps-sync --steps-per-epoch 20 --epochs 40 --validation-data "$work/pictures")
begin early 2 2
start_all "${many[@]}" --early-stopping val_loss:patience=1,min_delta=1 --checkpoint-dir "$work/ckpt-early"
finish
like "$statuses $(said)" "^0 0 0 0 .*Epoch 2: early stopping" "early stopping: server 0 ends training for all" || diag "$(said)"
is "$(wc -l <"$work/early/history.csv")" 3 "after two epochs"
is "$(python3 -c 'import json, sys; run = json.load(open(sys.argv[1])); print(run["strategy"], run["workers"], run["state"], run["why"], run["summary"]["epochs"])' "$work/early/run.json")" \
    "parameter-server 2 finished stopped early 2" "run.json says so"
go_on "${many[@]}" --early-stopping val_loss:patience=1,min_delta=1 --checkpoint-dir "$work/ckpt-early"
is "$statuses $(wc -l <"$work/early/history.csv")" "0 0 0 0  3" "begun again, it has nothing left to train" || diag "$(said)"
begin refused 1 1
start_all "${whole[@]}" --early-stopping val_loss:restore_best
finish
is "$statuses" "64 64 " "restore_best is refused" || diag "$(said)"
begin clipped 2 1 # server 0 has all parameters
start_all --model mnist-convnet --optimizer adam --global-clip-norm 1 --ps-sync --epochs 2 --checkpoint-dir "$work/ckpt-clipped"
finish
ok $? "a server that has no parameters" || diag "$statuses" "$(said)"
go_on --model mnist-convnet --optimizer adam --global-clip-norm 1 --ps-sync --epochs 3 --checkpoint-dir "$work/ckpt-clipped"
ok $? "also when the run continues" || diag "$statuses" "$(said)"
begin async 2 2
start_all --model mnist-cnn --batch-size 32 --epochs 100000 --checkpoint-dir "$work/ckpt-async"
begun 3
kill -TERM "$(program_of ps0)"
finish
is "$statuses" "75 75 75 75 " "asynchronous: SIGTERM to server 0: all end with 75" || diag "$(said)"
last=$(find "$work/ckpt-async" -name 'step-*' -printf '%f\n' | sort | tail -n 1)
go_on --model mnist-cnn --batch-size 32 --epochs $((10#${last#step-} / 8 + 1)) --checkpoint-dir "$work/ckpt-async"
ok $? "and the run can be continued" || diag "$statuses" "$(said)"
go_on --model mnist-cnn --batch-size 32 --epochs 1 --checkpoint-dir "$work/ckpt-async"
is "$statuses" "0 0 0 0 " "with fewer epochs than are done, nothing is left to train" || diag "$(said)"

# ---- gradients that are none ----------------------------------------------------------------------------------------
begin diverges 1 1
start_all --model mnist-convnet --learning-rate 1e6 --epochs 20
finish
is "$statuses" "69 69 " "diverging training: its gradients are rejected" || diag "$(said)"
like "$(said)" 'worker 0 on here was lost: its gradients are not finite, NaN or infinity: the training diverges' "the error names the worker"

# A worker that comes when all is over finds nobody, and ends when it is told to.
begin after 1 1
start worker 0 --model mnist-cnn
for _ in {1..300}; do ! grep -q 'waiting for parameter server 0' "$work/after.worker.0.out" || break; sleep 0.1; done
kill -TERM "$(program_of worker0)"
wait "${pid_of[worker0]}"
is $? 143 "a worker without servers gets SIGTERM: it ends with 143"
like "$(said)" 'worker 0 .*told to stop while it waited for parameter server 0' "the error names the awaited server"

# ---- usage ----------------------------------------------------------------------------------------------------------
begin usage 0 1
limit 60 "$hpc_train" fit --strategy parameter-server --model mnist-cnn --data "$work/pictures" >"$work/usage.ps.0.out" 2>&1
is $? 64 "without roles: an error"
like "$(said)" 'here are 0 and 1: srun --hpc-train-roles=ps:2,worker:4' "that names the option"
# refused MESSAGE OPTION…: server 0 alone, which sees it before it waits for anybody.
refused() {
    local message=$1
    shift
    begin usage 1 2
    start ps 0 --model mnist-cnn "$@"
    finish
    is "$statuses" "64 " "$*: an error"
    like "$(said)" "$message" "$*: the message"
}
refused 'backup-workers needs --ps-sync' --backup-workers 1
refused 'backup-workers is 0 to 1' --ps-sync --backup-workers 2
refused 'max-staleness is for asynchronous' --ps-sync --max-staleness 1
refused 'gradient-accumulation is not for' --gradient-accumulation 2
begin differs 1 1
start ps 0 --model mnist-cnn
start worker 0 --model mnist-convnet
wait "${pid_of[worker0]}"
is $? 78 "a worker with another model is refused"
like "$(cat "$work/differs.worker.0.out")" 'worker 0 .*disagrees with parameter server 0 on .*: layers is another here' "the worker prints the reason"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
begin differs 1 1
start ps 0 --model mnist-cnn
start worker 0 --model mnist-cnn --seed 4
wait "${pid_of[worker0]}"
is $? 78 "so is one with another seed"
like "$(cat "$work/differs.worker.0.out")" 'disagrees with parameter server 0 on .*: seed is "4" here, "3" there: start all ranks' "with both values"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
begin differs 1 1
start ps 0 --model mnist-cnn --class-weight "$work/weights.json"
start worker 0 --model mnist-cnn --class-weight auto
wait "${pid_of[worker0]}"
is $? 78 "a worker with other weights of classes is refused"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
mkdir "$work/named"
for i in 0 1; do cp "$top_srcdir/tests/fuzz/corpus/picture/png" "$work/named/$i.png"; done
printf 'file,class\n0.png,%s\n1.png,%s\n' a b >"$work/ab.csv"
printf 'file,class\n0.png,%s\n1.png,%s\n' b a >"$work/ba.csv"
named=(--model mnist-cnn --data "$work/named" --resize 28x28)
begin differs 1 1
start ps 0 "${named[@]}" --labels "$work/ab.csv"
start worker 0 "${named[@]}" --labels "$work/ba.csv"
wait "${pid_of[worker0]}"
is $? 65 "a worker that has read other labels is refused"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
begin differs 1 1
start ps 0 "${named[@]}" --labels "$work/ab.csv" --validation-data "$work/named" --validation-labels "$work/ab.csv"
start worker 0 "${named[@]}" --labels "$work/ab.csv" --validation-data "$work/named" --validation-labels "$work/ba.csv"
wait "${pid_of[worker0]}"
is $? 65 "so is one with other labels of the validation data"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
begin differs 1 1
start ps 0 --model "$work/penalized-model.json"
start worker 0 --model "$residual"
wait "${pid_of[worker0]}"
is $? 78 "one without the servers' regularizers is refused"
kill -KILL "$(program_of ps0)"
wait 2>/dev/null
done_testing
