#!/bin/bash
# faults.t: a rank is killed (SIGKILL) or stopped (SIGSTOP) at a random moment of training, under every strategy: the others
# end in time with 69 and name it, and nothing is left. With parameter servers a lost worker ends nobody else.
# HPC_TRAIN_SEED repeats a run's choices (but the moment is where the scheduler puts it); HPC_TRAIN_FAULTS: how many.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
seed=${HPC_TRAIN_SEED:-$((RANDOM * 32768 + RANDOM))}
faults=${HPC_TRAIN_FAULTS:-${HPC_TRAIN_LONG:+100}}
faults=${faults:-5}
diag "HPC_TRAIN_SEED=$seed"
RANDOM=$seed
export HPC_TRAIN_JOIN_SECONDS=30

# What is trained with, and how; for parameter servers, after the word ps.
ways=(
    "--strategy multi-worker-mirrored --bucket-bytes 20000"
    "--strategy multi-worker-mirrored --bucket-bytes 1000000000"
    "--strategy multi-worker-mirrored --allow-lossy --wire bf16 --bucket-bytes 20000"
    "--strategy multi-worker-mirrored --allow-lossy --wire fp16"
    "--strategy multi-worker-mirrored --allow-lossy --compress powersgd:2 --compress-warmup 3"
    "--strategy multi-worker-mirrored --allow-lossy --compress topk:0.01 --compress-warmup 3"
    "--strategy hybrid --hybrid-form rows"
    "--strategy hybrid --hybrid-form columns"
    "--strategy hybrid --hybrid-form back --bucket-bytes 20000"
    "--strategy local-sgd --allow-lossy --local-steps 3 --local-warmup-steps 2"
    "--strategy mirrored --replicas 2"
    "--strategy pipeline --micro-batches 3"
    "--strategy pipeline --stages 2"
    "--strategy auto"
    "ps --strategy parameter-server"
    "ps --strategy parameter-server --max-staleness 2"
    "ps --strategy parameter-server --ps-sync"
    "ps --strategy parameter-server --ps-sync --backup-workers 1"
)
models=("--model mnist-convnet" "--model mnist-convnet" "--model mnist-cnn")

# wait_for SECONDS COMMAND…: until it succeeds.
wait_for() {
    local tries=$(($1 * 20))
    shift
    for (( ; tries > 0; tries--)); do
        ! "$@" 2>/dev/null || return 0
        sleep 0.05
    done
    return 1
}
said() { cat "$dir"/out.*; }
began() { grep -q "^Epoch $1/" "$dir/out.0"; }
pid_of() { cat "$dir/pid.$1"; }
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }
# A rank's own process may be reaped and its status not be written yet.
has_ended() { [ -s "$dir/status.$1" ] || { is_gone "$(pid_of "$1")" && is_gone "$launcher"; }; }

# launch OPTION…: all ranks, as $size, $servers and $nodes say.
launch() {
    local rank port=$((25000 + RANDOM % 1900)) list=() cluster workers
    for ((rank = 0; rank < size; port++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue; fi
        list+=("\"127.0.0.1:$port\"")
        rank=$((rank + 1))
    done
    workers=$(IFS=,; echo "${list[*]:servers}")
    cluster="{\"worker\":[$workers]}"
    [ "$servers" = 0 ] || cluster="{\"ps\":[$(IFS=,; echo "${list[*]:0:servers}")],\"worker\":[$workers]}"
    dir=$work/fault.$number
    mkdir "$dir"
    local command=("$hpc_train" fit --data "$work/pictures" --global-batch-size "$global_batch" --steps-per-epoch 3
        --epochs 1000000 --verbose 2 --seed 3 "$@")
    if [ "$servers" = 0 ]; then
        # shellcheck disable=SC2016 # the variable is mpirun's
        mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl "$btl" -n "$size" \
            bash -c 'exec bash "$1" "$2" "$3" "$4" "$5" 0 "$OMPI_COMM_WORLD_RANK" "${@:6}"' launch \
            "$top_srcdir/tests/strategy/rank.sh" "$dir" "$cluster" "$nodes" "$size" "${command[@]}" >"$dir/mpirun" 2>&1 &
    else
        (
            for ((rank = 0; rank < size; rank++)); do
                bash "$top_srcdir/tests/strategy/rank.sh" "$dir" "$cluster" "$nodes" "$size" "$servers" "$rank" "${command[@]}" &
            done
            wait
        ) >"$dir/mpirun" 2>&1 &
    fi
    launcher=$!
}

# clear: whatever is left of the run is killed.
clear_away() {
    local file
    [ -n "${dir-}" ] || return
    for file in "$dir"/pid.*; do
        is_gone "$(cat "$file")" || kill -KILL "$(cat "$file")"
    done 2>/dev/null
    kill -KILL "$launcher" 2>/dev/null
    wait "$launcher" 2>/dev/null
}
at_exit clear_away

# others_end RANK REGEX: all ranks but this one end with 69 within 30 s, and say what matches. Of those under mpirun one has what
# does not answer killed, and may be killed with it: then its status is mpirun's.
others_end() {
    local rank wrong=() limit=30 status ending=$SECONDS
    for ((rank = 0; rank < size; rank++)); do
        [ $rank != "$1" ] || continue
        wait_for $((limit - SECONDS + ending > 0 ? limit - SECONDS + ending : 1)) has_ended $rank || wrong+=("rank $rank has not ended after $limit s")
    done
    for ((rank = 0; rank < size; rank++)); do
        [ $rank != "$1" ] || continue
        status=$(cat "$dir/status.$rank" 2>/dev/null)
        if [ $rank = $((victim == 0)) ] && [ "$servers$signal" = 0STOP ] && [ "${status:-143}" = 143 ] && is_gone "$launcher"; then
            wait "$launcher"
            status=$?
        fi
        [ "$status" = 69 ] || wrong+=("rank $rank ended with ${status:-nothing}")
        grep -Eq "$2" "$dir/out.$rank" || wrong+=("rank $rank did not name it")
        # Server 0 may hear of a lost server from a worker first, and names that worker, with its reason, too.
        [ "$(grep '^hpc-train: ' "$dir/out.$rank" | grep -Ecv "hpc-train: worker [0-9]+ on [a-z] was lost: $2")" = 1 ] || wrong+=("rank $rank did not say one line")
    done
    [ ${#wrong[@]} = 0 ]
    ok $? "$what: the others end within 30 s with 69 and name it" || diag "${wrong[@]}" "$(tail -n 4 "$dir"/out.* "$dir/mpirun")"
}

# nothing_left: also of what was stopped. Parameter servers have no launcher that would kill it: it ends when it goes on.
nothing_left() {
    local rank left=()
    [ "$servers$signal" = 0STOP ] || kill -CONT "$(pid_of "$victim")" 2>/dev/null
    for ((rank = 0; rank < size; rank++)); do
        wait_for 90 is_gone "$(pid_of $rank)" || left+=("rank $rank is left")
    done
    [ ${#left[@]} = 0 ]
    ok $? "$what: no process or file is left" || diag "${left[@]}" "$(tail -n 4 "$dir"/out.* "$dir/mpirun")"
}

# they_go_on: a worker is lost, and server 0 says so and goes on; SIGTERM then ends all.
they_go_on() {
    local rank wrong=() epoch last=$((size - 1))
    wait_for 20 grep -Eq "worker $((victim - servers)) on [a-z] was lost: $1" "$dir/out.0" || wrong+=("server 0 did not name it")
    epoch=$(grep -c '^Epoch' "$dir/out.0")
    wait_for 20 began $((epoch + 3)) || wrong+=("training did not go on")
    kill -TERM "$(pid_of 0)"
    for ((rank = 0; rank <= last; rank++)); do
        [ $rank != "$victim" ] || continue
        wait_for 10 has_ended $rank || wrong+=("rank $rank has not ended after SIGTERM to server 0")
    done
    [ ${#wrong[@]} = 0 ]
    ok $? "$what: the others continue without it" || diag "${wrong[@]}" "$(tail -n 4 "$dir"/out.* "$dir/mpirun")"
}

for ((number = 1; number <= faults; number++)); do
    # Each way in turn, from a random one on.
    [ $number -gt 1 ] || first=$((RANDOM % ${#ways[@]}))
    way=${ways[(first + number) % ${#ways[@]}]} model=${models[RANDOM % ${#models[@]}]}
    [[ $way != *" back "* ]] || model="--model $wide" # the last layers of the others are too small for it
    size=$((2 + RANDOM % 3)) nodes=$((RANDOM % 3)) servers=0 btl=self,vader
    signal=KILL
    [ $((RANDOM % 2)) = 0 ] || btl=self,tcp
    [ $((RANDOM % 3)) != 0 ] || signal=STOP
    if [ "${way%% *}" = ps ]; then servers=$((1 + RANDOM % 2)) size=$((servers + 2)) nodes=$((1 + RANDOM % 2)) way=${way#ps }; fi
    [ $servers = 0 ] && [ $nodes -gt 0 ] && [ $((RANDOM % 2)) = 0 ] && way+=' --comm tcp'
    [[ $way != *"--stages 2"* ]] || size=$((2 + RANDOM % 2 * 2))
    victim=$((RANDOM % size)) epoch=$((1 + RANDOM % 6)) delay=0.$((RANDOM % 20 + 10))
    what="$number: $model $way, rank $victim of $size ($btl, nodes: $nodes) gets SIG$signal in epoch $epoch"
    # shellcheck disable=SC2086 # several words
    launch $model $way
    if ! wait_for 60 began $epoch; then
        ok 1 "$what: trains" || diag "$(tail -n 4 "$dir"/out.* "$dir/mpirun")"
        clear_away
        continue
    fi
    sleep "$delay"
    # What MPI's write to a broken connection brings, and now and then it comes before the watch has seen what happened.
    for ((rank = 0; rank < size && servers == 0; rank++)); do [[ $way == *tcp ]] || kill -PIPE "$(pid_of $rank)"; done
    kill "-$signal" "$(pid_of $victim)"
    how='its connection closed' name="rank $victim on"
    [ $signal = KILL ] || how='no heartbeat'
    if [ $servers = 0 ]; then
        others_end $victim "hpc-train: rank [0-9]+ \\([^)]*\\): rank $victim on $([ $nodes = 0 ] && uname -n || echo '[ab]') was lost: $how"
    elif [ $victim -lt $servers ]; then
        others_end $victim "parameter server $victim on 127.0.0.1:[0-9]* was lost: $how"
    else
        they_go_on "$how"
    fi
    nothing_left
    clear_away
    rm -rf "$dir"
done
dir=
done_testing
