#!/bin/bash
# plugin_broadcast.t: one node reads, all receive: what arrives, how often the source is read, who is let in, and that a
# failure anywhere reaches everybody with the node's name. `make check-long` also waits for a stranger's deadline.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 4
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
# Where the user can read it, wherever this was built.
cp "${top_builddir:?run by make check}/tests/stage/intruder" "$work_here/intruder"
intruder=$work/intruder
stage=/opt/hpc-train/bin/hpc-train-stage

# A tree with everything in it: odd names, links, holes, many small files, one larger than a block.
set=$work_here/set
mkdir -p "$set/sub dir/empty" "$set/many"
printf 'one' >"$set/one"
printf 'odd' >"$set/sub dir/"$'new\nline \xff"'
ln "$set/one" "$set/sub dir/hard"
ln -s ../one "$set/sub dir/up"
: >"$set/nothing"
for ((i = 0; i < 700; i++)); do printf '%0*d' $((i * 3 + 1)) $i >"$set/many/$i"; done
head -c 3M /dev/urandom >"$set/large"
truncate -s 50M "$set/sparse"
printf 'end' >>"$set/sparse"
chmod 640 "$set/one"
touch -d '2001-02-03 04:05:06.789' "$set/one" "$set/sub dir/empty"
tar -czf "$work_here/set.tar.gz" -C "$set" .
head -c 40M /dev/urandom >"$work_here/file"
sandbox_run --root chown -R user: "$work"

# ---- through the plugin ----
# shellcheck disable=SC2016
sum='cd "$HPC_TRAIN_DATA" && { find . -not -type d -printf "%P|%y|%m|%s|%T@|%n|%l\n"; find . -type d -printf "%P|%m\n"; find . -type f -exec md5sum {} +; } | LC_ALL=C sort | md5sum | tr -d " -"'
want=$(sandbox_run env HPC_TRAIN_DATA="$work/set" bash -c "$sum")
capture sandbox_run srun -N4 --hpc-train-stage="$work/set" --hpc-train-stage-mode=broadcast bash -c "$sum"
ran "a folder is sent to four nodes"
is "$(sort <<<"$out" | uniq -c | tr -s ' ')" " 4 $want" "the copies are identical: names, links, holes, modes, times, content"
capture sandbox_run srun -N4 --hpc-train-stage="$work/set.tar.gz:x" --hpc-train-stage-mode=extract,broadcast bash -c "$sum"
ran "an archive is unpacked on one node for four"
is "$(sort <<<"$out" | uniq -c | tr -s ' ' | sed 's/\(.*\) .*/\1/')" "$(sort <<<"$out" | uniq -c | tr -s ' ' | head -n 1 | sed 's/\(.*\) .*/\1/')" "equal on all nodes"
# shellcheck disable=SC2016
capture sandbox_run srun -N4 --hpc-train-stage="$work/set.tar.gz:x" --hpc-train-stage-mode=extract,broadcast \
    bash -c 'diff -r --no-dereference "$0/set" "$HPC_TRAIN_DATA" && echo same' "$work"
is "$(grep -c same <<<"$out")" 4 "it has the archive's content"
# shellcheck disable=SC2016
capture sandbox_run env HPC_TRAIN_STAGE_MODE=broadcast srun -N4 -n8 --hpc-train-stage="$work/file,$work/set/one:first" \
    bash -c 'cmp "$SLURM_TMPDIR/file" "$0/file" && cat "$SLURM_TMPDIR/first"' "$work"
is "$status $out" "0 oneoneoneoneoneoneoneone" "two entries, the mode from the environment, two tasks on each node"
chmod 6755 "$set/one"
chmod 1777 "$set/many"
# shellcheck disable=SC2016
capture sandbox_run srun -N4 --hpc-train-stage="$work/set" --hpc-train-stage-mode=broadcast bash -c 'cd "$HPC_TRAIN_DATA" && stat -c %a one many | xargs'
is "$out" $'755 777\n755 777\n755 777\n755 777' "set-user-ID, set-group-ID and sticky bits are not kept"
chmod 640 "$set/one"
chmod 755 "$set/many"
capture sandbox_run srun -N4 --hpc-train-stage-mode=fast true
like "$err" "--hpc-train-stage-mode: 'fast' is not a way to stage: write auto, copy" "a wrong mode is refused"

# A later step of the job uses what is there; a node that lost it gets it again, together with the others.
# shellcheck disable=SC2016
capture sandbox_run salloc -Q -N4 bash -c '
    export HPC_TRAIN_STAGE=$0/set HPC_TRAIN_STAGE_MODE=broadcast
    srun true
    echo again >&2
    srun bash -c "[ \$SLURM_NODEID != 2 ] || rm -rf \$HPC_TRAIN_DATA/many"
    echo lost >&2
    srun bash -c "ls \$HPC_TRAIN_DATA/many | wc -l"' "$work"
like "$err" "again.*set is at /tmp/hpc-train/[0-9]*/set already, unchanged" "a second step uses what is there"
is "$(tr '\n' ' ' <<<"$out")" "700 700 700 700 " "a node that lost its copy gets it again"

# ---- by hand, on the login node ----
# team N OPTION...: so many processes that stage together; $codes and $took, and what each said in $err. The hook $during
# (a bash text, with $base and $pids) runs meanwhile.
base=$((26000 + RANDOM % 400 * 10))
during=:
team() {
    local count=$1 start=${EPOCHREALTIME/./}
    shift
    base=$((base + 10))
    # shellcheck disable=SC2016
    capture sandbox_run bash -c '
        during=$1 count=$2 base=$3 work=$4 intruder=$5 stage=$6 slow=$7; shift 7
        cd "$work" || exit
        for ((i = 0; i < count; i++)); do echo "127.0.0.1:$((base + i))"; done >nodes
        pids=()
        begin() {
            mkdir -p "/tmp/team/$i"
            [ -e "nodes.$i" ] && own=nodes.$i || own=nodes
            "$stage" --verbose --to "/tmp/team/$i" --nodes $own --index $i --job 1.$base "$@" &
            pids[i]=$!
        }
        for ((i = 0; i < count; i++)); do [ "$i" = "$slow" ] || begin "$@"; done
        [ -z "$slow" ] || { sleep 1; i=$slow; begin "$@"; }
        eval "$during"
        codes=
        for pid in "${pids[@]}"; do wait $pid; codes+="$? "; done
        echo "${codes% }"
        for ((i = 0; i < count; i++)); do
            [[ " $codes" == *" 137 "* ]] || ls "/tmp/team/$i/.hpc-train/incoming" 2>/dev/null | sed "s/^/left: /"
        done' \
        team "$during" "$count" "$base" "$work" "$intruder" "$stage" "${slow-}" "$@"
    took=$(((${EPOCHREALTIME/./} - start) / 1000))
}
clear_team() { sandbox_run --root bash -c 'umount /tmp/team/2 2>/dev/null; rm -rf /tmp/team'; }
at_exit clear_team

team 5 --mode broadcast "$work/file"
is "$out" "0 0 0 0 0" "five nodes stage together without Slurm" || diag "$err"
read_by() { sed -n "s/.*: $1 bytes received.* \([0-9]*\) read from.*/\1/p" <<<"$err"; }
size=$(stat -c %s "$work_here/file")
got=$(read_by 0)
ok "$([ "$got" -ge $((2 * size)) ] && [ "$got" -lt $((2 * size + 1000000)) ]; echo $?)" \
    "the first reads the source once (and checks its copy): $got of $size bytes"
most=$(read_by '[1-9][0-9]*' | sort -n | tail -n 1)
ok "$([ "$most" -ge "$size" ] && [ "$most" -lt $((size + 1000000)) ]; echo $?)" "the other nodes only check their copies: at most $most bytes"
most=$(sed -n 's/.* \([0-9]*\) sent to them.*/\1/p' <<<"$err" | sort -n | tail -n 1)
ok "$([ "$most" -lt $((size + size / 10)) ]; echo $?)" "no node sends more than it receives: at most $most bytes"

# Of an archive's items with one name the last one counts, in whatever order several threads come to them.
mkdir "$work_here/twice"
for ((i = 0; i < 3000; i++)); do printf 'first %d' $i >"$work_here/twice/$i"; done
seq 0 2999 | tar -cf "$work_here/twice.tar" -C "$work_here/twice" -T -
for ((i = 0; i < 3000; i += 2)); do printf 'second %d' $i >"$work_here/twice/$i"; done
for ((i = 1; i < 3000; i += 100)); do ln -sf 0 "$work_here/twice/$i"; done
seq 2999 -1 0 | tar -rf "$work_here/twice.tar" -C "$work_here/twice" -T -
clear_team
team 3 --mode extract,broadcast "$work/twice.tar:twice"
# shellcheck disable=SC2016
is "$out $(sandbox_run bash -c 'for i in 0 1 2; do diff -r --no-dereference "$0/twice" /tmp/team/$i/twice && echo same; done' "$work" | uniq -c | tr -s ' ')" \
    "0 0 0  3 same" "an archive's later items replace earlier ones" || diag "$err"

# What `auto` picks, and why.
clear_team
team 4 "$work/file"
like "$err" "$work/file: read here and sent to the other nodes: 42 MB in 1 entries are read once instead of by 4 nodes" "auto: a large file"
clear_team
team 3 "$work/set/one"
like "$err" "$work/set/one: copied by each node: 3 B in 1 entries are few enough" "auto: little to read"
clear_team
# shellcheck disable=SC2016
sandbox_run bash -c 'mkdir -p /tmp/team/own; for i in 0 1; do mkdir -p "$0/own$i"; head -c 9M /dev/urandom >"$0/own$i/data"; done' "$work"
# shellcheck disable=SC2016
sandbox_run --root bash -c '
    cd "$0" || exit
    printf "127.0.0.1:%d\n" $1 $(($1 + 1)) >nodes
    for i in 0 1; do
        mkdir -p /tmp/team/$i && chown user: /tmp/team/$i
        unshare --mount bash -c "mount --bind $0/own$i /tmp/team/own
            exec setpriv --reuid=user --regid=user --clear-groups $2 --verbose --to /tmp/team/$i --nodes nodes --index $i \
                --job local /tmp/team/own/data" &
    done
    wait
    cmp own0/data /tmp/team/0/data && cmp own1/data /tmp/team/1/data && echo own' "$work" $((base += 10)) "$stage" \
    >"$work_here/own.out" 2>"$work_here/own.err"
like "$(cat "$work_here/own.err")" "copied by each node: not all nodes see the same source: it is local to each" "auto: a source on each node's own disk"
is "$(cat "$work_here/own.out")" own "each step has its own copy"
clear_team
during=:

# Where no munged answers: that node says so at once, whatever the others do.
for mode in auto broadcast; do
    # shellcheck disable=SC2016
    capture sandbox_run --root bash -c '
        cd "$0" && mkdir -p /tmp/team/0 && printf "127.0.0.1:%d\n" $1 $(($1 + 1)) >nodes
        unshare --mount bash -c "mount -t tmpfs none /run/munge
            timeout 20 $2 --mode $3 --to /tmp/team/0 --nodes nodes --index 0 --job alone $0/file"' \
        "$work" $((base += 10)) "$stage" $mode
    like "$status $err" "^78 .*login: this step has no key and no munged answers here, .*--hpc-train-stage-mode=copy" "$mode: without key or munge"
done
clear_team
# In a step, which has a key: one node's munged answers root, and so Slurm, but not the user.
broken=$(all_nodes | sed -n 2p)
on_node "$broken" bash -c 'mkdir /run/aside && mount --bind /run/munge /run/aside && mount -t tmpfs -o mode=700 none /run/munge &&
    touch /run/munge/munge.socket.2 && mount --bind /run/aside/munge.socket.2 /run/munge/munge.socket.2'
mend() { on_node "$broken" bash -c '[ ! -d /run/aside ] || { umount /run/munge/munge.socket.2 /run/munge /run/aside; rmdir /run/aside; }'; }
at_exit mend
for mode in auto broadcast; do
    capture sandbox_run srun -N4 --hpc-train-stage="$work/file" --hpc-train-stage-mode=$mode bash -c "cmp '$work/file' \"\$SLURM_TMPDIR/file\""
    ran "a step on a node without munge, $mode: the data is there"
    like "$err" "hpc-train-stage: node0: 1 file" "one node reads it"
done
mend

# ---- failures ----
failed() { # NAME STATUSES MESSAGE
    like "$out" "^$2$" "$1: everybody ends with the right status"
    like "$err" "$3" "$1: the error names node and reason"
    ok "$([ $took -lt 60000 ]; echo $?)" "$1: soon ($took ms)"
    clear_team
}
sandbox_run bash -c "head -c 400M /dev/zero >'$work/huge'"
# shellcheck disable=SC2034,SC2016
{
    wait_for_data='for ((i = 0; i < 2000; i++)); do [ -s /tmp/team/1/.hpc-train/incoming/0 ] && break; sleep 0.005; done; kill -STOP ${pids[3]};'
    during="$wait_for_data"'kill -KILL ${pids[2]}; kill -CONT ${pids[3]}'
    team 4 --mode broadcast "$work/huge"
    failed "a killed node" "69 69 137 69" "127.0.0.1: it was lost: it ended, or was killed, without a word"
    during="$wait_for_data"'kill -TERM ${pids[1]}; kill -CONT ${pids[3]}'
    team 4 --mode broadcast "$work/huge"
    failed "SIGTERM" "75 75 75 75" "ended by signal 15"
    during="$wait_for_data"'printf x >>huge; kill -CONT ${pids[3]}'
    team 4 --mode broadcast "$work/huge"
    failed "a source that changes" "74 74 74 74" "huge (was changed|changed|has changed|is not)"
    during=
    team 3 --mode broadcast "$work/nothing"
    failed "a missing source" "66 66 66" "nothing cannot be read: No such file"
    slow=1 # the other two know, and the first of them is not the one it hears
    team 3 --mode broadcast "$work/nothing"
    failed "a missing source, and a node that comes later" "66 66 66" "nothing cannot be read: No such file"
    slow=
    team 3 --mode broadcast --wait 2 --index 0 "$work/file" # all say that they are the first
    failed "a node that does not come" "(69|78) (69|78) (69|78)" "it did not come within 2 seconds"
}
# SIGTERM while the others have yet to come: to be waited for, or to be told of a failure.
ends() { # NAME INDEX SOURCE STATUS
    # shellcheck disable=SC2016
    capture sandbox_run bash -c '
        cd "$0" && mkdir -p /tmp/team/0 && printf "127.0.0.1:%d\n" $1 $(($1 + 1)) >nodes
        "$2" --to /tmp/team/0 --nodes nodes --index $3 --job signals --mode broadcast "$4" &
        for ((i = 0; i < 600; i++)); do # until it is ready for the signal
            ((0x$(sed -n "s/^SigCgt:[[:space:]]*//p" /proc/$!/status) & 0x4000)) && break
            sleep 0.1
        done
        sleep 1
        start=${EPOCHREALTIME/./}
        kill -TERM $! || exit
        wait $!
        echo $? $(((${EPOCHREALTIME/./} - start) / 1000))' "$work" $((base += 10)) "$stage" "$2" "$3"
    is "${out% *}" "$4" "SIGTERM to $1: it ends without waiting for others (${out#* } ms)"
    clear_team
}
ends "the first node" 0 "$work/file" 75
ends "another" 1 "$work/file" 75
ends "one that has failed" 0 "$work/not there" 66
# One disk too small for what only its node is short of.
capture sandbox_run --root bash -c 'mkdir -p /tmp/team/2 && mount -t tmpfs -o size=20m,mode=1777 none /tmp/team/2 && chown -R user: /tmp/team'
during=
team 4 --mode broadcast "$work/file"
failed "a disk too small" "74 74 74 74" "/tmp/team/2 needs 42 MB, but only"

# ---- in the middle of the way ----
sandbox_run rm -f "$work/huge"
# Two nodes: the second reaches the first through the proxy.
middle() { # COMMAND
    # shellcheck disable=SC2016
    sandbox_run bash -c 'cd "$0" && printf "127.0.0.1:%d\n" $(($1 + 9)) $(($1 + 1)) >nodes.1' "$work" $((base + 10))
    # shellcheck disable=SC2016
    during='"$intruder" '"$1"' & proxy=$!; wait ${pids[0]} ${pids[1]}; for p in $(pgrep -P $proxy) $proxy; do kill $p; done 2>/dev/null'
    team 2 --mode broadcast --wait 20 "$work/file"
}
# shellcheck disable=SC2016
{
    middle 'proxy $((base + 9)) 127.0.0.1 $base flip 5000000'
    like "$err" "data received from 127.0.0.1 was damaged in transit" "a changed byte is noticed"
    is "$(sandbox_run bash -c 'cat /tmp/team/1/file 2>/dev/null | wc -c')" 0 "nothing is left of it"
    clear_team
    middle 'proxy $((base + 9)) 127.0.0.1 $base cut 5000000'
    like "$err" "127.0.0.1: it was lost" "a connection that is cut is noticed"
    clear_team
    middle 'replay $((base + 9)) 127.0.0.1 $base'
    is "$status $(sandbox_run bash -c 'cmp "$0" /tmp/team/1/file && echo same' "$work/file")" "0 same" "a proxy that only listens hears what it may"
    unlike "$err" "was welcome" "but a repeated HELLO is rejected"
    clear_team
}
sandbox_run rm -f "$work/nodes.1"

# ---- strangers: while the last of three has yet to come ----
stranger() { # NAME COMMAND [MESSAGE]
    # shellcheck disable=SC2016
    during='kill -STOP ${pids[2]}; '"$2"'; echo "let in: $?" >&2; kill -CONT ${pids[2]}'
    team 3 --mode broadcast --wait 60 "$work/file"
    like "$err" "let in: 0" "$1: is not let in"
    is "$out" "0 0 0" "$1: does not disturb"
    [ -z "${3-}" ] || like "$err" "$3" "$1: is told in verbose mode"
    clear_team
}
capture sandbox_run --root bash -c "cp '$intruder' /tmp/intruder && chmod 755 /tmp/intruder"
at_exit "sandbox_run --root rm -f /tmp/intruder"
# shellcheck disable=SC2016
{
    stranger "garbage" '"$intruder" garbage 127.0.0.1 $base'
    stranger "who says nothing" 'timeout 1 "$intruder" silent 127.0.0.1 $base; true'
    [ -z "${HPC_TRAIN_LONG-}" ] || stranger "a slow one" '"$intruder" slow 127.0.0.1 $base'
    stranger "the same user's other job" '"$intruder" hello 127.0.0.1 $base 1.999 2 0' "a connection was refused: it is of another job or step"
    stranger "one who is none of its children" '"$intruder" hello 127.0.0.1 $base 1.$base 7 0'
}
# Another user, with a credential of his own.
# shellcheck disable=SC2016
during='kill -STOP ${pids[2]}; touch ready; while [ -e ready ]; do sleep 0.05; done; kill -CONT ${pids[2]}'
(
    for ((i = 0; i < 300; i++)); do [ -e "$work_here/ready" ] && break; sleep 0.1; done
    port=$(sed -n '1s/.*://p' "$work_here/nodes")
    sandbox_run --root setpriv --reuid=12345 --regid=12345 --clear-groups /tmp/intruder hello 127.0.0.1 "$port" "1.$port" 2 0
    echo "let in: $?" >"$work_here/other"
    rm -f "$work_here/ready"
) &
other=$!
team 3 --mode broadcast --wait 60 "$work/file"
wait $other
is "$(cat "$work_here/other")" "let in: 0" "another user is rejected"
is "$out" "0 0 0" "without disturbing the run"

done_testing
