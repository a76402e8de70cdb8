#!/bin/bash
# auto.t: the strategy that is chosen by trials trains as one rank does, from the state before the trials; the choice is said.

# shellcheck source=tests/strategy/lib.sh
. "$(dirname "$0")/lib.sh"
for options in "--model mnist-cnn --optimizer adam" "--model $residual --sync-batch-norm --momentum 0.9"; do
    # shellcheck disable=SC2086 # several words
    reference $options
    # shellcheck disable=SC2086
    same_as_one 2 $options --strategy auto
done
like "$(field many strategy)" '^(multi-worker-mirrored|hybrid)$' "the summary has what was chosen"

train 2 said --model mnist-convnet --strategy auto --verbose 2
like "$(cat "$work/said.out")" "strategy [a-z-]+.*: [0-9.]+ ms a step, predicted [0-9.]+; .*; 2 ranks (are (faster than one|SLOWER than one: give it fewer) \([0-9.]+ times\)|share 1 core, )" \
    "one line says what was chosen, how fast it was and should be, and what the ranks gain"
unlike "$(cat "$work/said.out")" "pay off|still be faster|hardly slower" "of one machine nothing is said of more ranks"
is "$(grep -c "^strategy" "$work/said.out")" 1 "once"
for way in multi-worker-mirrored "hybrid \(rows\)" "hybrid \(columns\)"; do
    like "$(cat "$work/said.out")" "strategy .*$way" "$way was a candidate"
done
unlike "$(cat "$work/said.out")" "local-sgd|bf16|powersgd" "no lossy strategy is considered"

# What is wrong is found before the trials.
cosine=(--schedule cosine --learning-rate-file "$work/none")
for wrong in "--early-stopping val_loss" "--reduce-lr-on-plateau val_accuracy" "--stop-at val_loss=1" "--learning-rate-file $work/none" \
    "${cosine[*]}" "--save-best $work/best.npz" "--save-best /nowhere/best.safetensors" "--weights $work/none.safetensors"; do
    # shellcheck disable=SC2086
    train 2 wrong --model mnist-convnet --verbose 2 --strategy auto $wrong
    ok $(($? == 0)) "${wrong//$work\//} is refused"
    unlike "$(cat "$work/wrong.out")" "strategy [a-z-]+:" "before anything is tried"
done

# whose cores the ranks compute on
on_cores() { # CPUS COMMAND…: without OMP_NUM_THREADS, as ranks find them
    limit 300 env -u OMP_NUM_THREADS taskset -c "$1" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 \
        "$hpc_train" "${@:2}" >"$work/cores.out" 2>&1
}
read -r first second _ < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }' | paste -sd ' ')
on_cores "$first" fit --model mnist-convnet --data "$work/pictures" --global-batch-size 16 --steps-per-epoch 1
like "$(cat "$work/cores.out")" "strategy [a-z-]+.* ms a step.*; 2 ranks share 1 core, so that what they gain beside one is not known: give each a core of its own" \
    "ranks that share a core are not told what they gain"
unlike "$(cat "$work/cores.out")" "faster than one|still be faster" "nor how many would be faster"
on_cores "$first" plan --model mnist-convnet --batch-size 8 --nodes 1,2
like "$(cat "$work/cores.out")" "2 ranks share 1 core here: what is measured is slower" "a measured plan reports shared cores, too"
like "$(cat "$work/cores.out")" "network: .*measured here" "the network between them is measured unless given"
if [ -n "$second" ] && [ "$(cat "/sys/devices/system/cpu/cpu$first/topology/thread_siblings_list")" = "$first" ]; then
    on_cores "$first,$second" fit --model mnist-convnet --data "$work/pictures" --global-batch-size 16 --steps-per-epoch 1
    like "$(cat "$work/cores.out")" "; of ranks with 1 thread, and one alone here would have 2" "with two cores, one rank would have both threads"
fi

# machines OF EACH RANK: two ranks, each on the machine of this number, as far as it can see; two cores at least, or nothing is said.
machines() {
    cat >"$work/machine" <<END
#!/bin/bash
numbers=(\$1)
printf '%08x-0000\n' "\${numbers[OMPI_COMM_WORLD_RANK]}" >"$work/boot.\$OMPI_COMM_WORLD_RANK"
mount --bind "$work/boot.\$OMPI_COMM_WORLD_RANK" /proc/sys/kernel/random/boot_id && exec "\${@:2}"
END
    limit 300 mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 unshare --mount bash "$work/machine" "$1" "$hpc_train" fit --model mnist-convnet \
        --data "$work/pictures" --global-batch-size 64 --steps-per-epoch 1 >"$work/machines.out" 2>&1
}
if [ -n "$second" ] && unshare --mount mount --bind "$work" /mnt 2>/dev/null; then
    machines "7 7"
    like "$(cat "$work/machines.out")" "strategy [a-z-]+.*; 2 ranks " "two ranks of one machine" || diag "$(cat "$work/machines.out")"
    unlike "$(cat "$work/machines.out")" "still be faster|hardly slower" "are all that is spoken of"
    for _ in {1..3}; do # what is predicted follows from times, which other programs may have changed
        machines "7 8"
        grep -qE "would still be faster|are SLOWER|share [0-9]+ core" "$work/machines.out" && break
    done
    like "$(cat "$work/machines.out")" "2 ranks (are faster than one.*; (up to [0-9]+|[0-9]+) (ranks|nodes) (or more )?would still be faster|are SLOWER|share [0-9]+ core)" \
        "two ranks of two machines: up to how many would still be faster" || diag "$(cat "$work/machines.out")"
fi

train 2 lossy --model mnist-convnet --strategy auto --verbose 2 --allow-lossy
for way in local-sgd "multi-worker-mirrored \(bf16\)" "multi-worker-mirrored \(powersgd:4\)"; do
    like "$(cat "$work/lossy.out")" "strategy .*$way" "with --allow-lossy $way is considered"
done

train 2 own --model "$wide" --strategy auto --verbose 2
like "$(cat "$work/own.out")" "hybrid \\(back\\)" "the last layers in parts are one, also where each rank normalizes by its own pictures"
train 2 named --model mnist-convnet --verbose 2 --strategy multi-worker-mirrored
unlike "$(cat "$work/named.out")" "strategy [a-z-]+:" "a strategy that was named is not tried"
is "$(field named strategy)" multi-worker-mirrored "the named strategy is used"
train 1 alone --model mnist-convnet --verbose 2 --strategy auto
unlike "$(cat "$work/alone.out")" "strategy [a-z-]+:" "with one rank there is no choice"
done_testing
