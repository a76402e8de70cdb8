#!/bin/bash
# sandbox.t: the one-machine cluster itself: refusals, up, run, down, what a node has of its own, link rates, and that
# nothing is left when it ends, however it ends. Uses clusters of its own in a temporary folder.

# shellcheck source=tests/cluster/lib.sh disable=SC2016
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "the sandbox needs root"

temporary=$(mktemp -d /var/tmp/hpc-train-sandbox.XXXXXX)
at_exit "rm -rf '$temporary'"
chmod 755 "$temporary"

# with FOLDER ARGUMENT...: the sandbox command on another folder.
with() { HPC_TRAIN_SANDBOX=$temporary/$1 limit 60 "$sandbox" "${@:2}"; }
at_exit "with one down >/dev/null; with two down >/dev/null"

# in_spoilt_machine COMMAND: runs a shell command where mounts are seen by nobody else.
in_spoilt_machine() {
    HPC_TRAIN_SANDBOX=$temporary/one limit 60 unshare --mount --propagation unchanged \
        bash -c "mount --namespace /proc/self/ns/mnt --make-rprivate / && $1"
}

# until_there FILE: waits until it has content, for 5 seconds at most.
until_there() {
    for _ in {1..300}; do
        [ -s "$1" ] && break
        sleep 0.1
    done
}

# ---- refusals ------------------------------------------------------------------------------------------------------

refused() { # STATUS REGEX ARGUMENT...
    capture with one "${@:3}"
    is "$status" "$1" "sandbox ${*:3}: exit status $1"
    like "$err" "$2" "sandbox ${*:3}: says why"
}
refused 64 "'0' is not a number of nodes" up 0
refused 64 "'many' is not a number of nodes" up many
refused 64 "'201' is not a number of nodes" up 201
refused 64 "not '2' and '3'" up 2 3
refused 64 "'fast' is not a rate" up --rate fast
refused 64 "'1gbit/5' is not a rate" up --rate 1gbit/5
refused 64 "--rate needs a value" up 2 --rate
refused 64 "'fast' is not a rate, .* nor unlimited" up --server fast
refused 64 "--server needs a value" up 2 --server
refused 64 "unknown option --colour" up --colour
refused 64 "unknown command 'start'" start
refused 64 "which command" run
refused 64 "--node needs a node" run --node
refused 78 "no cluster runs in $temporary/one" run true

cp -r "$top_srcdir/etc/sandbox" "$temporary/copy"
capture limit 20 setpriv --reuid=65534 --clear-groups env HPC_TRAIN_SANDBOX=/nonexistent "$temporary/copy/sandbox" up
is "$status" 78 "without root: exit status 78"
like "$err" "need root" "without root: says so"

capture in_spoilt_machine "mount --bind /dev/null '$(command -v munged)'; '$sandbox' up"
is "$status" 78 "without a program: exit status 78"
like "$err" "munged is missing: apt-get install munge" "without a program: names it and its package"

capture in_spoilt_machine "mount --bind /bin/false '$(command -v munged)'; '$sandbox' up"
is "$status" 70 "a daemon that ends at once: exit status 70"
like "$err" "munged ended while waiting for munged to answer" "a daemon that ends at once: is named"
[ ! -e "$temporary/one/state/ready" ] && capture with one status
is "$out" "no cluster runs in $temporary/one" "a failed start leaves no cluster"

# ---- one cluster ---------------------------------------------------------------------------------------------------

# What the machine would show of a cluster that leaks.
outside() {
    ip -oneline link | cut -d: -f2
    grep -F "$temporary" /proc/mounts
    ls -la --time-style=full-iso /run/netns /run/munge /etc/slurm /etc/munge /var/spool /var/log /shared /opt/hpc-train 2>&1
}
outside_before=$(outside)

capture with one up 2
is "$status" 0 "up" || diag "$err"
capture with one up
is "$status" 78 "up again: exit status 78"
like "$err" "already runs in $temporary/one" "up again: says so"
capture with one status
is "$status" 0 "status: exit status 0"
like "$out" "supervisor pid [0-9]+, 2 nodes" "status: names the supervisor"
is "$(grep -c idle <<<"$out")" 2 "status: both nodes are idle"

capture with one run sh -c 'echo out; echo error >&2; exit 7'
is "$status $out $err" "7 out error" "run hands on exit status, output and errors, and adds nothing"
capture with one run sh -c 'kill -9 $$'
is "$status $out$err" "137 " "run hands on death by a signal"
capture with one run no-such-program
is "$status" 127 "run of no such program"
head -c 3000000 /dev/urandom >"$temporary/bytes"
with one run cat <"$temporary/bytes" >"$temporary/copied"
cmp "$temporary/bytes" "$temporary/copied"
ok $? "run hands on standard input and output, byte by byte"
is "$(with one run sh -c 'id -un; pwd; echo $HOME; uname -n')" \
    $'user\n/shared/home/user\n/shared/home/user\nlogin' "run starts in HOME as the ordinary user"
is "$(with one run --root id -u)" 0 "run --root"
is "$(with one run --node node1 sh -c 'id -un; pwd; uname -n')" $'user\n/\nnode1' "run --node"
is "$(with one run --root --node=node0 sh -c 'id -un; uname -n')" $'root\nnode0' "run --root --node"
capture with one run --node node2 true
is "$status $err" "69 sandbox: no slurmd of node2 runs in $temporary/one" "run --node: one that is not there"
capture with one run --root touch /usr/outside
like "$err" "Read-only" "not even root can write outside the cluster"

HPC_TRAIN_SANDBOX=$temporary/one "$sandbox" run sh -c 'trap "echo ended; exit 3" TERM; echo ready; sleep 20 & wait' \
    >"$temporary/signal" &
pid=$!
until_there "$temporary/signal"
kill -TERM $pid
wait $pid
is "$? $(tail -n 1 "$temporary/signal")" "3 ended" "run hands on signals"

HPC_TRAIN_SANDBOX=$temporary/one "$sandbox" run sh -c 'echo $$ >pid; exec sleep 60' 2>/dev/null &
pid=$!
until_there "$temporary/one/shared/home/user/pid"
inner=$(cat "$temporary/one/shared/home/user/pid")
kill -KILL $pid
wait $pid 2>/dev/null
for _ in {1..300}; do
    with one run --root test -e "/proc/$inner" || break
    sleep 0.1
done
with one run --root test ! -e "/proc/$inner"
ok $? "a killed run takes its command with it"

# A terminal: typed Ctrl-C must arrive, and once, as srun takes a second one for "at once".
cat >"$temporary/one/shared/interrupted" <<'END'
trap 'count=$((count + 1))' INT
tty | tee listening
for ((i = 0; i < 300 && !count; i++)); do sleep 0.1; done
sleep 1
echo "interrupted ${count-0} times"
END
in_terminal() {
    until_there "$temporary/one/shared/home/user/listening"
    sleep 0.3
    printf '\003'
    sleep 3
}
if script -qec true /dev/null >/dev/null 2>&1; then
    capture script -qec "HPC_TRAIN_SANDBOX=$temporary/one $sandbox run bash /shared/interrupted" /dev/null < <(in_terminal)
    like "$out" "^/dev/pts/[0-9]+" "run on a terminal: the command sees it"
    like "$out" "interrupted 1 times" "run on a terminal: Ctrl-C arrives, once"
else
    skip "run on a terminal" "there are no terminals here, or no program script"
fi

is "$(with one run srun -N2 hostname | sort | xargs)" "node0 node1" "each node has a name of its own"
with one run srun -N1 -w node0 touch /tmp/mark /dev/shm/mark /var/tmp/mark mark
is "$(with one run srun -N1 -w node1 sh -c 'ls /tmp /dev/shm /var/tmp | grep -c mark; ls mark')" $'0\nmark' \
    "each node has temporary folders of its own, and HOME is shared"
is "$(with one run srun -N2 --gres=gpu:2 sh -c 'echo $CUDA_VISIBLE_DEVICES')" $'0,1\n0,1' "each node has two GPUs"
is "$(with one run srun -N1 --gres=gpu:1 sh -c 'test -c /dev/gpu$CUDA_VISIBLE_DEVICES && echo device')" device \
    "a GPU is a device"

printf '#!/bin/sh\n#SBATCH -N2 -o batch.out\nsrun hostname\n' | with one run sbatch --wait >/dev/null
is "$(with one run sort batch.out | xargs)" "node0 node1" "the ordinary user submits a batch job"

cat >"$temporary/ring.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, sum %d\n", size, sum);
    return MPI_Finalize();
}
END
mpicc -o "$temporary/one/shared/ring" "$temporary/ring.c"
ranks=(srun -N2 --ntasks-per-node=2 --mpi=pmix)
HPC_TRAIN_SANDBOX=$temporary/one has_pmix || ranks=(salloc --quiet -N2 --ntasks-per-node=2 mpirun)
for _ in 1 2 3; do # once more where MPI_Init of Open MPI 5 crashes on another rank's first message, as it does at times
    capture with one run "${ranks[@]}" /shared/ring
    [[ $err == *mca_pml_ob1_recv_frag_callback_match* ]] || break
done
is "$out$err" "4 ranks, sum 6" "an MPI program runs over both nodes"

like "$(with one logs slurmctld)" "slurmctld version" "logs of one daemon"
like "$(with one logs)" "==> node1.log <==" "logs of all"
capture with one logs node7
is "$status" 66 "logs of a daemon that there is not: exit status 66"

# ---- two at once, one with slow links ------------------------------------------------------------------------------

capture with two up 1 --rate 100mbit/80ms
is "$status" 0 "a second cluster in another folder" || diag "$err"
like "$(with two status)" "1 nodes, link rate 100mbit/80ms" "status: the rate"
capture with two run srun -N1 sh -c 'PATH=$PATH:/usr/sbin:/sbin; tc qdisc show dev eth0; ip route show dev eth0'
like "$out" "tbf .*rate 100Mbit .*lat 80ms" "what waits longer than was asked for is lost"
like "$out" "rto_min lock 320ms" "and TCP waits four times as long before it sends again"
seconds_to_fetch() { # FOLDER: how long 25 MB take from node0 to the login node
    local TIMEFORMAT=%R
    { time with "$1" run srun -N1 -w node0 head -c 25000000 /dev/zero >/dev/null; } 2>&1
}
free=$(seconds_to_fetch one) shaped=$(seconds_to_fetch two)
ok "$(awk "BEGIN { print !($shaped >= 1.8) }")" "25 MB take 2 s and more over 100 Mb/s: $shaped s, and $free s without a limit"
capture with two down
is "$status" 0 "down"
capture with two up 20
is "$status" 0 "up 20" || diag "$err"
for _ in 1 2 3; do # once more where a busy machine has let a node answer too late
    nodes=$(with two run srun -N20 hostname | sort -u | wc -l)
    [ "$nodes" != 20 ] || break
done
is "$nodes" 20 "a job on 20 nodes"
with two down >/dev/null
is "$(with one run echo alive)" alive "the first cluster is still there"

# ---- /shared over the network --------------------------------------------------------------------------------------

with_server() {
    capture with two up 2 --server 100mbit
    is "$status" 0 "up --server" || diag "$err"
    like "$(with two status)" "/shared over the network, 100mbit" "status: so is /shared"
    is "$(with two run srun -N1 stat --file-system --format=%T /shared)" fuseblk "/shared is a mount on each node"
    is "$(with two run sh -c 'echo 1 >made; srun -N2 sh -c "cat made; echo 2 >\$(hostname)"; stat -c %U node0 node1; cat node0')" \
        $'1\n1\nuser\nuser\n2' "node and login node see each other's files, which are the user's"
    with two run --root sh -c 'mkdir -m 700 /shared/private && echo secret >/shared/private/file'
    capture with two run srun -N1 cat /shared/private/file
    like "$err" "Permission denied" "who may not read a file may not on a node either"
    with two run head -c 25000000 /dev/urandom >"$temporary/two/shared/home/user/bytes"
    local TIMEFORMAT=%R seconds
    seconds=$({ time with two run srun -N2 sh -c 'cat bytes >/dev/null'; } 2>&1)
    awk "BEGIN { exit !($seconds >= 3.6 && $seconds < 30) }"
    ok $? "two nodes that read 25 MB at once share 100 Mb/s: 4 s ($seconds s)" || true
    with two down >/dev/null
}
if command -v sshfs >/dev/null && command -v systemd-socket-activate >/dev/null && [ -x /usr/lib/openssh/sftp-server ] &&
    [ -c /dev/fuse ]; then
    with_server
else
    skip "up --server" "it needs FUSE, sshfs, openssh-sftp-server and systemd-socket-activate"
fi

# ---- the end -------------------------------------------------------------------------------------------------------

# The processes in a pid namespace, each with the time of its start: once they are gone, another namespace may have the number.
processes_of() { # NAMESPACE
    local process
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/ns/pid")" = "$1" ]; then echo "${process#/proc/} $(start_of "${process#/proc/}")"; fi
    done 2>/dev/null
}
start_of() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
all_gone() { # PROCESS...
    local pid start
    while read -r pid start; do
        if [ -n "$start" ] && [ "$(start_of "$pid")" = "$start" ]; then return 1; fi
    done < <(printf '%s\n' "$@")
}

# Ends the cluster with a command, and tests that all of it is gone.
ends_with() { # HOW COMMAND...
    local how=$1 supervisor init namespace before
    shift
    read -r supervisor init <"$temporary/one/state/pids"
    namespace=$(readlink "/proc/$init/ns/pid")
    with one run sh -c 'echo >busy; exec srun -N2 sleep 50' 2>/dev/null &
    until_there "$temporary/one/shared/home/user/busy"
    mapfile -t before < <(processes_of "$namespace")
    rm -f "$temporary/one/shared/home/user/busy"
    export supervisor init
    "$@" >/dev/null
    ok $? "$how"
    for _ in {1..300}; do
        all_gone "${before[@]}" && break
        sleep 0.1
    done
    [ ${#before[@]} -ge 5 ] && all_gone "${before[@]}"
    ok $? "$how: its ${#before[@]} processes are gone"
    wait $!
    is "$(outside)" "$outside_before" "$how: no mount, interface or file is left"
    is "$(with one status)" "no cluster runs in $temporary/one" "$how: status says so"
}

ends_with "down" with one down
with one up 2 >/dev/null
ok $? "up after down"
ends_with "kill -9 of the supervisor" sh -c 'kill -9 $supervisor'
with one up 2 >/dev/null
ok $? "up after that"
ends_with "kill -9 of the supervisor's child" sh -c 'kill -9 $init'
is "$(ls -A "$temporary/one/mnt")" "" "nothing was written below mnt/"
done_testing
