#!/bin/bash
# plugin_life.t: what is left when something is killed: the staging helper, a task, slurmstepd, slurmd, or the whole job by
# scancel or its time limit; while data comes in, while the tasks run, while results go out, in the epilog. In a sandbox of its own.
# Once each in `make check` (without the time limit, which Slurm counts in minutes); 20 times each with HPC_TRAIN_LONG=1.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
times=${HPC_TRAIN_LIFE_TIMES:-${HPC_TRAIN_LONG:+20}}
times=${times:-1}
own_sandbox
mkdir -p "$own/shared/life"

# Stands for hpc-train-stage where the storage is slow: before it starts it waits for as many seconds as the names say,
# without a process of its own.
cat >"$own/root/opt/hpc-train/bin/slow-stage" <<'END'
#!/bin/bash
all=" $* "
if [[ $all == *" --record "* ]]; then
    trap '' TERM
    from=${all#* --from } record=${all#* --record }
    from=${from%% *}
    all=$(tr '\0' '\n' <"${from%/*}/.records-${from##*/}/${record%% *}")
    [[ $all == *slow-last-* ]] && exit 74 # left to the last try
    [[ $all =~ slow-out-([0-9]+) ]]
elif [[ $all == *" --all "* ]]; then
    from=${all#* --from }
    from=${from%% *}
    all=$(cat "${from%/*}/.records-${from##*/}"/out.* 2>/dev/null | tr '\0' '\n')
    [[ $all =~ slow-last-([0-9]+) ]]
else
    [[ $all == *" --to "* && $all =~ slow-in-([0-9]+) ]]
fi
if [ -n "${BASH_REMATCH[1]}" ]; then read -r -t "${BASH_REMATCH[1]}" -u 9 9<>/tmp/slow; fi
exec /opt/hpc-train/bin/hpc-train-stage "$@"
END

# A task: results first, then training for as long as it is told. The name is there to be found by.
cat >"$own/shared/life/task" <<'END'
#!/bin/bash
mkdir "$SLURM_TMPDIR/res"
seq 100 >"$SLURM_TMPDIR/res/$3"
touch "/shared/life/begun/$1$SLURM_NODEID"
sleep "$2"
END

# drive VICTIM PHASE I: one job, as the user, and what happens to it; run as root on the login node, beside others of its
# kind. Prints one line with what is left.
cat >"$own/shared/life/drive" <<'END'
#!/bin/bash
victim=$1 phase=$2 i=$3 name=life-$1-$2-$3- dir=/shared/life
in=data out=results train=1 time=10
wait=3
again=${i//[!x]/} # an x for each time that it was too late, on a busy machine
wait=$((wait + 8 * ${#again}))
[ "$victim" = time ] && time=1 wait=150
[ "$victim" = slurmd ] && wait=11 # until others are where they should be, too
case $phase in
in) in=slow-in-$wait ;;
train) train=$((wait - 1)) ;;
out) out=slow-out-$wait train=0.1 ;;
last) out=slow-last-$wait train=0.1 ;;
esac
setpriv --reuid=user --regid=user --init-groups env HOME=$dir srun --quiet -N2 -n2 --time=$time --job-name="$name" --chdir=$dir \
    --hpc-train-stage="$dir/in/$in" --hpc-train-stage-out="res/$out:$dir/out/$name%n" $dir/task "$name" $train "$out" >"$dir/log/$name" 2>&1 &
srun=$!
job=
until_done() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do [ $SECONDS -lt $end ] || return; sleep 0.1; done
}
running() { job=$(squeue --noheader --name="$name" --states=R --format=%A); [ -n "$job" ]; }
until_done 60 running || { # a slurmd of 22.05 was seen to abort, of its heap, as steps began at once
    echo "$victim $phase: its job does not start: $(sinfo --noheader --format='%N %T' | xargs)"
    kill -KILL $srun
    exit
}
step() { # the step's daemons (0), or their tasks before their programs start (1)
    ps -eo pid,ppid,args | awk -v job="[$job.0]" -v task="$1" '
        $3 == "slurmstepd:" && $4 == job { parent[$1] = $2 }
        END { for (pid in parent) {
                  child = parent[pid] in parent
                  if (child == task && !(child && (parent[parent[pid]] in parent))) print pid } }'
}
here() {
    case $phase in
    in) pgrep -f "stage .*--to /tmp/hpc-train/$job " >/dev/null ;;
    train) [ -e "$dir/begun/${name}0" ] && [ -e "$dir/begun/${name}1" ] ;;
    out) pgrep -f "stage .*--from /tmp/hpc-train/$job --record" >/dev/null ;;
    last) pgrep -f "stage .*--from /tmp/hpc-train/$job --all" >/dev/null ;;
    esac
}
until_done 60 here || echo "$victim $phase: job $job did not get there"
touch "$dir/there/$victim-$phase-$i"
case $victim-$phase in
helper-in) pid=$(pgrep -f "stage .*--to /tmp/hpc-train/$job " | shuf -n 1) ;;
helper-out) pid=$(pgrep -f "stage .*--from /tmp/hpc-train/$job --record" | shuf -n 1) ;;
task-in) pid=$(step 1 | shuf -n 1) ;;
task-train) pid=$(pgrep -f "bash $dir/task $name " | shuf -n 1) ;;
stepd-*) pid=$(step 0 | shuf -n 1) ;;
scancel-*) pid=0; scancel "$job" ;;
*) pid=0 ;;
esac
ended() { ! kill -0 $srun 2>/dev/null; }
[ "$pid" = 0 ] || { here && kill -KILL $pid; } 2>/dev/null || {
    until_done 100 ended
    wait $srun
    [ ${#again} -lt 5 ] && exec "$0" "$victim" "$phase" "${i}x"
    echo "$victim $phase: it was too late to kill $pid in job $job"
}
# Slurm itself does not notice that a slurmstepd was killed; a person or the time limit ends such a job.
[ $victim = stepd ] && { until_done 2 ended || scancel "$job"; }
until_done 200 ended || echo "$victim $phase: srun of job $job does not end"
kill -KILL $srun 2>/dev/null
wait $srun
patience=60
[ $phase = last ] && patience=200 # slurmctld asks again that the job be ended, but not at once
gone() { [ -z "$(squeue --noheader --name="$name" --format=%A)" ]; }
until_done $patience gone || echo "$victim $phase: job $job does not leave the queue"
# A job leaves the queue before its slurmstepd has ended.
left() { pgrep -fa "$name|/tmp/hpc-train/$job( |/|\$)|^slurmstepd: \[$job\." | grep -v "$dir/drive" | xargs; }
none_left() { [ -z "$(left)" ]; }
until_done 100 none_left
left=$(left)
for node in 0 1; do
    if cmp -s "$dir/out/$name$node" <(seq 100); then
        results=complete
    elif [ -e "$dir/out/$name$node" ]; then
        results=TORN
    elif [ ! -e "$dir/begun/$name$node" ]; then
        results=none
    elif grep -qs "not copied out" "$dir/hpc-train-lost.$job.0.$node"; then
        results=reported
    else
        results=LOST
    fi
    echo "$victim $phase job=$job $SECONDS s node$node: results $results, left: $left"
done
END
mkdir "$own"/shared/life/{in,out,log,begun,there}
for name in data slow-in-{3,11,19,27,35,43,150}; do echo data >"$own/shared/life/in/$name"; done
chmod 755 "$own/root/opt/hpc-train/bin/slow-stage" "$own"/shared/life/{task,drive}
HPC_TRAIN_PLUGSTACK_ARGS="helper=/opt/hpc-train/bin/slow-stage stage_last_try=20" limit 60 "$sandbox" up 2 >/dev/null || exit 1
for node in node0 node1; do on_node "$node" mkfifo -m 666 /tmp/slow; done
sandbox_run --root chown -R user: /shared/life

# drive_all CASE...: each of them, `times` times, a few at once; leaves what they say in $said.
run_limit=$((200 + 140 * times))
drive_all() { # AT_ONCE CASE...
    local case i
    said=$(for case in "${@:2}"; do
        for ((i = 0; i < times; i++)); do echo "${case/-/ } $i"; done
    done | sandbox_run --root xargs -P "$1" -L 1 /shared/life/drive)
    diag "$said" "at $SECONDS s"
}
# settled CASE: what must hold of every job of a case.
settled() {
    local lines complete none reported
    lines=$(grep "^${1/-/ }[ :]" <<<"$said")
    complete=$(grep -c "results complete" <<<"$lines")
    none=$(grep -c "results none" <<<"$lines")
    reported=$(grep -c "results reported" <<<"$lines")
    is "$(grep -vE ": results (complete|none|reported), left: \$" <<<"$lines")" "" "$1: nothing is lost without a word, no process is left"
    is "$((complete + none + reported))" $((2 * times)) "$1: $times jobs on two nodes: results of $complete complete, $reported reported lost, $none had none"
}
clean() { # NAME
    local node
    for node in node0 node1; do
        no_job_left "$node" "$1: $node has no directory and no note of a job left"
    done
    is "$(sandbox_run pgrep -u user -a | grep -v pgrep)" "" "$1: the user has no process left"
    is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$1: no node is drained"
}

# ---- one process, or all, of a job ----
cases=(helper-in helper-out task-in task-train stepd-in stepd-train stepd-out scancel-in scancel-train scancel-out)
drive_all 10 "${cases[@]}"
for case in "${cases[@]}"; do settled "$case"; done
clean "kills"

# ---- the only task of a component, while data comes in: the other component ends too ----
sandbox_run timeout 200 srun --mpi=none --hpc-train-stage-mode=copy --hpc-train-stage=/shared/life/in/slow-in-150 -N1 sleep 100 : -N1 sleep 100 \
    2>"$own/het.err" &
het=$!
# Tasks before their programs are children of a slurmstepd that look like it; so does for a moment what either forks.
# shellcheck disable=SC2016
task=$(sandbox_run --root timeout 100 bash -c 'until [ "$(cut -d " " -f 1 <<<"$tasks" | sort -u | wc -l)" = 2 ] && [ "$tasks" = "$before" ]; do
        sleep 0.5
        before=$tasks
        tasks=$(ps -eo pid,ppid,args | awk '\''$3 == "slurmstepd:" { parent[$1] = $2; step[$1] = $4 }
            END { for (pid in parent)
                      if ((parent[pid] in parent) && !(parent[parent[pid]] in parent)) print step[pid], pid }'\'' | sort -V)
    done
    tail -n 1 <<<"$tasks" | cut -d " " -f 2')
sandbox_run --root kill -KILL "$task"
start=$SECONDS
wait $het
is "$? $([ $((SECONDS - start)) -lt 90 ]; echo $?)" "137 0" "a step of two components ends with the task of one ($((SECONDS - start)) s)"
like "$(cat "$own/het.err")" "its tasks were ended before their programs started: the step is ended" "the error says why"
for ((i = 0; i < 200; i++)); do [ -z "$(sandbox_run squeue --noheader)" ] && break; sleep 0.1; done
clean "components"

# ---- slurmd ----
# Something must keep the node's namespaces while no daemon is in them.
# shellcheck disable=SC2016
on_node node0 bash -c 'echo $$ >/shared/life/holder; exec sleep 4000' &
for ((i = 0; i < 600; i++)); do [ -s "$own/shared/life/holder" ] && break; sleep 0.1; done
holder=$(cat "$own/shared/life/holder")
on_holder() { sandbox_run --root nsenter --target "$holder" --mount --uts --net --ipc --root --wd=/ "$@"; }
restart_slurmd() { # TURN: when all of its jobs are where they should be
    local i
    for ((i = 0; i < 600; i++)); do
        [ "$(find "$own/shared/life/there" -name "slurmd-*-$1" | wc -l)" = ${#cases[@]} ] && break
        sleep 0.1
    done
    # shellcheck disable=SC2016
    on_holder bash -c 'for pid in $(pgrep -x "slurmd(-wlm)?"); do [ "$(nsenter --target $pid --uts hostname)" = node0 ] && kill -KILL $pid; done'
    sleep 0.5
    on_holder slurmd -N node0
}
cases=(slurmd-in slurmd-train slurmd-out)
[ -z "${HPC_TRAIN_LONG-}" ] || cases+=(slurmd-last) # until slurmctld asks again that the job be ended
all=
for ((turn = 0; turn < times; turn++)); do
    restart_slurmd $turn &
    said=$(for case in "${cases[@]}"; do echo "${case/-/ } $turn"; done | sandbox_run --root xargs -P 4 -L 1 /shared/life/drive)
    wait $!
    all+=$said$'\n'
done
said=$all
diag "$said" "at $SECONDS s"
for case in "${cases[@]}"; do settled "$case"; done
clean "slurmd"

# ---- the time limit ----
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    cases=(time-in time-train time-out)
    drive_all 60 "${cases[@]}"
    for case in "${cases[@]}"; do settled "$case"; done
    clean "time limit"
else
    skip "the time limit" "takes two minutes: make check-long"
fi

done_testing
