# shellcheck shell=bash disable=SC2154 # variables of tests/gpu/run
# tests/gpu/lib.sh - steps with a line and a time each, for tests/gpu/run. Sourced.

say() { printf '%s\n' "$*"; }

# An emulated GPU takes longer.
patience=${HPC_TRAIN_TEST_PATIENCE-1}
seconds_left() { echo $((began + patience * total - $(date +%s))); }

# step NAME SECONDS COMMAND...: runs it, within its time and what is left of all, output into the log. The line says what
# came of it, and the last line of the output that begins with "= ".
step() {
    local name=$1 limit=$((patience * $2)) left start seconds code outcome detail out=$results/step-$1.out
    shift 2
    left=$(seconds_left)
    ((limit <= left)) || limit=$left
    if ((limit < 3)); then
        record "$name" "no time" 0 "the other steps took it"
        return
    fi
    start=$(date +%s)
    (
        set -m # its own group, to end all of it
        "$@" </dev/null >"$out" 2>&1 &
        child=$!
        (
            sleep "$limit"
            kill -TERM -- "-$child"
            sleep 3
            kill -KILL -- "-$child"
        ) 2>/dev/null &
        clock=$!
        trap 'kill -KILL -- "-$clock" "-$child"; exit 143' TERM INT # who ends all of it
        wait $child
        code=$?
        kill -KILL -- "-$clock" "-$child" 2>/dev/null # a process that ignores TERM would stay on the GPU
        exit $code
    ) 2>/dev/null
    code=$?
    seconds=$(($(date +%s) - start))
    { printf '\n==== %s (at most %d s): %s\n' "$name" "$limit" "$*" && cat "$out"; } >>"$log"
    case $code in
        0) outcome=ok ;;
        77) outcome=skipped ;;
        *) outcome="FAILED $code" ;;
    esac
    if ((code > 128 && seconds >= limit)); then
        outcome="timed out"
        memory_is_back
    fi
    detail=$(grep -a '^= ' "$out" | tail -n 1 | cut -c3-)
    [ -n "$detail" ] || [ $code = 0 ] || detail=$(grep -av '^$' "$out" | tail -n 1 | cut -c1-140)
    record "$name" "$outcome" "$seconds" "$detail"
}

# Waits until the driver has given back what a step held that was ended, if nothing runs beside it.
memory_is_back() {
    local tries
    [ -z "$warming" ] || return
    for ((tries = 0; tries < 20 && ${#beside[@]} == 0 && $(gpu_memory) > memory_before + 1000; tries++)); do sleep 0.5; done
}

record() { # NAME OUTCOME SECONDS DETAIL
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4//$'\t'/ }" >>"$results/steps.tsv"
    printf '%-24s %-10s %4s s  %s\n' "$@" | tee -a "$log"
}

# The cluster's config of rank R of N on this machine, ports from P on; the first $servers of them are parameter servers.
servers=0
config() { # R N P
    local r=$1 n=$2 p=$3 i cluster='' addresses='' role=worker index=$(($1 - servers))
    for ((i = 0; i < n; i++)); do
        addresses+="${addresses:+,}\"127.0.0.1:$((p + i))\""
        if ((i + 1 == servers)); then cluster="\"ps\":[$addresses]," addresses=; fi
    done
    if ((r < servers)); then role=ps index=$r; fi
    printf '{"version":1,"job":"gpu-%d","cluster":{%s"worker":[%s]},"task":{"type":"%s","index":%d},' \
        "$p" "$cluster" "$addresses" "$role" "$index"
    printf '"rank":%d,"local_rank":%d,"node_rank":0,"nodes":[{"name":"here","tasks":%d,"gpus":1}]}' "$r" "$r" "$n"
}

# NCCL keeps 33 MiB of /dev/shm for each communicator of a rank: 77 where there is less, for up to three.
shared_room() { # N
    local kib
    kib=$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)
    ((${kib:-0} >= $1 * 3 * 34000)) && return
    say "= /dev/shm has ${kib:-no} KiB free, $1 ranks may need $(($1 * 3 * 34000)): mount a larger one"
    exit 77
}

# Starts N ranks of hpc-train with the arguments, each with its own NCCL_HOSTID, for NCCL refuses two ranks of one host on
# one GPU; they then count as hosts of their own and talk over sockets. Fills pids; output goes to rank-PORT-R.out.
ranks() { # N PORT ARGUMENT...
    local n=$1 port=$2 r key=$results/key
    shift 2
    [ -s "$key" ] || (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$key") # as srun makes one for each step
    ((servers > 0)) || shared_room "$n"
    pids=()
    for ((r = 0; r < n; r++)); do
        HPC_TRAIN_CONFIG=$(config "$r" "$n" "$port") HPC_TRAIN_KEY_FILE=$key NCCL_HOSTID=rank$r NCCL_NET=Socket NCCL_SOCKET_IFNAME='=lo' NCCL_DEBUG=WARN \
            CUDA_DEVICE_MAX_CONNECTIONS=32 HPC_TRAIN_JOIN_SECONDS=60 "$hpc_train" "$@" --comm tcp >"$results/rank-$port-$r.out" 2>&1 &
        pids+=($!)
    done
}
