#!/bin/bash
# plugin_ports.t: the ports that tasks are told are free on every node of the step: others are taken where somebody has some of them,
# and where none is left all tasks end with 78, and one node says which port it is and whose. Another user, www-data, has the ports.
# shellcheck disable=SC2016,SC2154 # the tasks expand; lib.sh sets the variables

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
on_cluster 3
needs_plugin
# shellcheck source=tests/cluster/layout_lib.sh
. "$(dirname "$0")/layout_lib.sh"
make_show
make_het_srun
cp "$top_srcdir/tests/cluster/take.py" "${top_builddir:?run by make check}/tests/cluster/stranger" "$work_here"
chmod 755 "$work_here" "$work_here/stranger"
mapfile -t nodes < <(all_nodes)
first=${nodes[0]} second=${nodes[1]} third=${nodes[2]}
both=(-w "$first,$second" -N2)
other=(setpriv --reuid=33 --regid=33 --clear-groups)
whose='uid 33, www-data'

within() { # SECONDS COMMAND...: whether it succeeds in that time
    local end=$((SECONDS + $1))
    until "${@:2}"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
# take NODE LOW HIGH HOW: he has these ports, until `give_back`.
takers=()
take() {
    local file wanted=$(($3 - $2 + 1))
    file=$(mktemp "$work_here/taken.XXXXXX")
    run_limit=1200 on_node "$1" "${other[@]}" python3 "$work/take.py" "${@:2}" >"$file" 2>&1 &
    takers+=($!)
    has_all() { [ "$(awk '{ n += $2 } END { print n }' "$file")" = "$wanted" ]; }
    within 120 has_all || diag "not all are taken: $(cat "$file")"
}
give_back() {
    sandbox_run --root pkill -f "$work/take.py"
    wait "${takers[@]}"
    takers=()
}
ports_of() { grep -o '"[a-z]*[0-9]*:[0-9]*"' <<<"$1" | grep -o '[0-9][0-9]*"' | tr -d '"' | sort -nu | paste -sd' '; }
says_once() { # PORT-PATTERN NODE NAME
    is "$(grep -o "port [0-9]* on [a-z0-9]* cannot be used: .* by [^;]*;" <<<"$err" | sed -E "s/^port $1 on/port P on/")" \
        "port P on $2 cannot be used: Address already in use by $whose;" "$3: it is said once, with port, node and user"
}
refused() { # NAME PORT-PATTERN NODE: what was captured last
    is "$status" 78 "$1: srun ends with 78" || diag "$err"
    unlike "$err" 'exit code ([0-69]|7[0-79])' "$1: all tasks end with 78"
    says_once "$2" "$3" "$1"
}

# ---- some ports are taken on one node: the next block, on all ----
narrow=24000-24127 # two blocks
for how in listen bind six; do
    take "$second" 24003 24003 $how
    capture sandbox_run srun --hpc-train-port=$narrow "${both[@]}" --ntasks-per-node=4 "$work/show"
    is "$status $(judge <<<"$out") $(ports_of "$out")" "0 8 tasks 24064 24065 24066 24067" "a port of the first block is taken ($how): the second one" || diag "$err"
    # Nodes without tasks for it do not need it.
    capture sandbox_run srun --hpc-train-port=24000-24004 "${both[@]}" -n3 "$work/show"
    is "$status $(judge <<<"$out")" "0 3 tasks" "a port that no task of the node needs does not matter ($how)" || diag "$err"
    give_back
done
take "$second" 24000 24000 listen
for name in "one node" "not the one" "three nodes" "variables are not exported" "no PMIx"; do
    case $name in
    "one node") options=(-w "$second" -N1 -n2) want='2 tasks 24064 24065' ;;
    "not the one") options=(-w "$first,$third" -N2 -n2) want='2 tasks (24000|24064)' ;;
    "three nodes") options=(-w "$first,$second,$third" -N3 -n3) want='3 tasks 24064' ;;
    "variables are not exported") options=("${both[@]}" -n2 --export=NONE) want='2 tasks 24064' ;;
    "no PMIx") options=("${both[@]}" -n2 --mpi=none) want='2 tasks 24064' ;;
    esac
    capture sandbox_run srun --hpc-train-port=$narrow "${options[@]}" "$work/show"
    like "$status $(judge <<<"$out") $(ports_of "$out")" "^0 $want\$" "$name" || diag "$err"
done
capture sandbox_run "$work/het-srun" --hpc-train --hpc-train-port=$narrow --mpi=none -N1 -n2 -w "$first" "$work/show" : -N1 -n1 -w "$second" "$work/show"
is "$status $(judge <<<"$out") $(ports_of "$out")" "0 3 tasks 24064 24065" "components" || diag "$err"
cat >"$work_here/job.sh" <<'END'
#!/bin/bash
for i in 1 2 3; do srun --hpc-train-port=24000-24127 "$1/show"; done
END
capture sandbox_run sbatch --wait --parsable "${both[@]}" -n2 --output="$work/job.out" "$work/job.sh" "$work"
is "$status $(ports_of "$(cat "$work_here/job.out")") $(grep -c worker "$work_here/job.out")" "0 24064 6" "steps of a batch script" || diag "$(cat "$work_here/job.out")"
cat >"$work_here/het.sh" <<'END'
#!/bin/bash
#SBATCH -N1 -n1
#SBATCH hetjob
#SBATCH -N1 -n1
srun --het-group=0,1 --mpi=none --hpc-train-port=24000-24127 "$1/show"
srun --mpi=none --hpc-train-port=24000-24127 "$1/show"
END
for node in "$first" "$third"; do take "$node" 24000 24000 listen; done # whichever it gets
capture sandbox_run sbatch --wait --parsable --exclude="${nodes[3]:-none}" --output="$work/het.out" "$work/het.sh" "$work"
is "$status $(ports_of "$(cat "$work_here/het.out")") $(grep -c worker "$work_here/het.out")" "0 24064 3" "steps of a heterogeneous job, over both components and in one" || diag "$(cat "$work_here/het.out")"
give_back

# ---- a range of one block, a single port, and the one for a broadcast ----
take "$second" 24300 24310 listen
capture sandbox_run srun --hpc-train-port=24300-24310 "${both[@]}" --ntasks-per-node=2 sleep 300
refused "a narrow range" '243[0-9]*' "$second"
capture sandbox_run srun --hpc-train-port=24309 "${both[@]}" --ntasks-per-node=2 sleep 300
refused "a single port" 24309 "$second"
capture sandbox_run srun --hpc-train-port=24299 "${both[@]}" --ntasks-per-node=2 sleep 300
refused "the port after it" 24300 "$second"
staged=(--hpc-train-stage=/etc/hostname --hpc-train-stage-mode=broadcast)
capture sandbox_run srun --hpc-train-port=24298 "${staged[@]}" "${both[@]}" --ntasks-per-node=2 sleep 300
refused "the port for a broadcast" 24300 "$second"
capture sandbox_run srun --hpc-train-port=24298 "${both[@]}" --ntasks-per-node=2 printenv MASTER_PORT
is "$status $(sort -u <<<"$out")" "0 24298" "which only a broadcast needs"
capture sandbox_run srun --hpc-train-port=24296-24425 "${staged[@]}" "${both[@]}" --ntasks-per-node=4 bash -c 'cmp /etc/hostname $SLURM_TMPDIR/hostname; echo $MASTER_PORT'
is "$status $(sort -u <<<"$out")" "0 24360" "a range in which it is not free in the first block" || diag "$err"
give_back

# ---- all of them on one node ----
older=$(printf '%s\n' 6.8 "$(uname -r)" | sort -V | head -n 1)
for how in listen bind; do
    take "$second" 20000 32767 $how
    [ $how = listen ] || [ "$older" = 6.8 ] || whose='a socket that does not listen, whose user this kernel does not tell'
    capture sandbox_run srun --hpc-train "${both[@]}" --ntasks-per-node=2 sleep 300
    refused "all ports of a node ($how)" '[23][0-9]*' "$second"
    like "$err" 'of the 64 blocks of ports .* here 64 are taken' "the error has the number of blocks ($how)"
    capture sandbox_run srun "${staged[@]}" "${both[@]}" --ntasks-per-node=2 sleep 300
    refused "the same, broadcast ($how)" '[23][0-9]*' "$second"
    capture sandbox_run srun --hpc-train -N1 -w "$second" -n2 sleep 300
    refused "a step of that node alone ($how)" '[23][0-9]*' "$second"
    capture sandbox_run srun --hpc-train -w "$first,$third" -N2 true
    ran "other nodes: nothing happens ($how)"
    capture sandbox_run srun --hpc-train-port=12000-12100 "${both[@]}" true
    ran "nor with other ports ($how)"
    give_back
done

# ---- steps at once ----
# One block is taken on one node, so that they want the same ones, at the same time.
take "$second" 24000 24000 listen
cat >"$work_here/at-once" <<'END'
#!/bin/bash
mkdir "$1/$SLURM_JOB_ID" || exit
for i in 1 2 3; do srun --exact --mem=0 --hpc-train-port=24000-24255 -N2 -n2 bash -c 'echo $MASTER_PORT; "$0/meet"' "$1" & pids+=($!); done
for pid in "${pids[@]}"; do wait $pid || echo "ended with $?"; done
END
# Each goes on when all three are there.
cat >"$work_here/meet" <<'END'
#!/bin/bash
cd "${0%/*}/$SLURM_JOB_ID" && touch "$SLURM_STEP_ID" || exit
for ((i = 0; i < 400; i++)); do
    [ "$(ls | wc -l)" = 3 ] && exit
    sleep 0.1
done
END
chmod 755 "$work_here/at-once" "$work_here/meet"
for try in 1 2 3; do
    capture sandbox_run salloc --quiet "${both[@]}" --ntasks-per-node=3 "$work/at-once" "$work"
    is "$(sort <<<"$out" | uniq -c | awk '{ print $1, $2 }' | paste -sd,)" "2 24064,2 24128,2 24192" "three concurrent steps get the three free blocks ($try)" || diag "$err"
done
capture sandbox_run salloc --quiet "${both[@]}" --ntasks-per-node=3 bash -c 'srun --exact --hpc-train-port=24000-24127 -N2 -n2 sh -c "touch \"\$0/held\"; until [ -e \"\$0/let-go\" ]; do sleep 0.1; done" "$0" &
    until [ -e "$0/held" ]; do sleep 0.1; done; srun --exact --hpc-train-port=24000-24127 -N2 -n2 sleep 30; echo $?; touch "$0/let-go"; wait; srun --hpc-train-port=24000-24127 -N2 -n2 true; echo $?' "$work"
is "$out" $'78\n0' "ports of another step: 78 until it has ended" || diag "$err"
like "$err" 'port 24064 on .* is held by another step that runs there \([0-9]+\.0 of uid 12000, user\)|port 24000 on' "the error names the holder"
give_back

# ---- reservations are root's: who takes names or files like theirs reserves nothing, and is not named ----
cat >"$work_here/names.py" <<'END'
"""Abstract sockets that say they are reservations, and attempts at the file; prints what was possible."""
import os, socket, sys, time
pid = os.getpid()
names = [f"hpc-train/port/{ports}/{process}/{step}{kind}" for ports in ("1-65535", "24000-24127") for process in (1, pid)
         for step in ("9.9", "1.0") for kind in ("", "/block", "/try")]
names += ["hpc-train/port/1-65535/1/9.9\n @hpc-train/port/1-65535/1/1.1", "\n0 @hpc-train/port/1-65535/1/9.9", "hpc-train/ports", "hpc-train"]
kept = []
for name in names:
    kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    kept[-1].bind("\0" + name)
for folder in ("/run/hpc-train", "/run/hpc-train/ports", "/run/hpc-train-ports"):
    for what in (lambda p: os.open(p, os.O_RDONLY), lambda p: os.open(p + "/x", os.O_CREAT | os.O_RDWR), os.mkdir, os.listdir, os.unlink,
                 lambda p: os.rename(p, p + "2"), lambda p: os.symlink("/etc", p), lambda p: os.link(p, "/tmp/ports")):
        try:
            what(folder)
            print("he can", folder)
        except OSError:
            pass
print(len(kept), "names", flush=True)
time.sleep(600)
END
namers=()
for node in "$first" "$second"; do
    run_limit=1200 on_node "$node" "${other[@]}" python3 "$work/names.py" >"$work_here/names.$node" 2>&1 &
    namers+=($!)
    within 60 grep -q names "$work_here/names.$node"
done
is "$(cat "$work_here/names.$first" "$work_here/names.$second")" $'28 names\n28 names' "a stranger has all names there are, and can open, make or remove nothing of root's"
capture sandbox_run srun --hpc-train-port=$narrow "${both[@]}" --ntasks-per-node=4 "$work/show"
like "$status $(judge <<<"$out") $(ports_of "$out")$err" '^0 8 tasks (24000 24001 24002 24003|24064 24065 24066 24067)$' "which changes nothing for a step"
capture sandbox_run srun --hpc-train-port=24000 -N1 -w "$first" -n2 printenv MASTER_PORT
is "$status $(sort -u <<<"$out")" "0 24000" "nor for one of one node with a single port"
sandbox_run --root pkill -f "$work/names.py"
wait "${namers[@]}"
# A step's own programs have nothing that they could hold ports with, and its ports are free when its slurmstepd is killed.
sandbox_run srun --job-name=holds --hpc-train-port=24000 -N1 -w "$first" bash -c 'for fd in /proc/self/fd/*; do readlink $fd; done | grep -c hpc-train/ports; sleep 600' >"$work_here/holds" 2>&1 &
step=$!
within 60 grep -q '[0-9]' "$work_here/holds"
is "$(head -n 1 "$work_here/holds")" 0 "a program does not inherit the file"
capture sandbox_run srun --hpc-train-port=24000 -N1 -w "$first" --overlap --mem=0 true
like "$status $err" "^78 .*port 24000 on $first is held by another step that runs there \\([0-9]+\\.0 of uid 12000, user\\)" "a reservation that is real"
job=$(sandbox_run squeue --noheader --name=holds --format=%A)
sandbox_run --root pkill -KILL -u root -f "^slurmstepd: \\[$job\\.0"
capture sandbox_run srun --hpc-train-port=24000 -N1 -w "$first" --overlap --mem=0 printenv MASTER_PORT
is "$status $out" "0 24000" "slurmstepd is killed: the port is free" || diag "$err"
sandbox_run scancel --name=holds
wait "$step"

# ---- a node that comes late: the others wait, and can be ended ----
slurmd_on() {
    sandbox_run --root bash -c 'for pid in $(pgrep -x "slurmd(-wlm)?"); do
        [ "$(nsenter --target $pid --uts hostname)" = "$1" ] && kill "-$2" $pid; done; :' slurmd_on "$@"
}
at_exit "slurmd_on $third CONT"
# srun's port, as those see it who wait there: www-data's tools do.
port_of_srun() { on_node "$first" awk '$4 == "01" && $8 == 12000 { split($3, a, ":"); print a[2]; exit }' /proc/net/tcp | sed 's/^/0x/'; }
waits() { port=$(($(port_of_srun) + 0)); [ $port != 0 ]; }
late() { # NAME: a step whose third node does not start yet: $step, $port
    slurmd_on "$third" STOP
    sandbox_run srun --job-name=late --hpc-train -w "$first,$second,$third" -N3 "$work/show" >"$work_here/out" 2>"$work_here/err" &
    step=$!
    within 30 waits || diag "$1: nobody waits"
}
ends() { # leaves $status, $out, $err
    wait "$step"
    status=$?
    out=$(cat "$work_here/out") err=$(cat "$work_here/err")
}
is_idle() { [ "$(sandbox_run sinfo --noheader --nodes="$third" --format=%t)" = idle ]; }
# held_late NAME: the same; leaves $job and those processes that wait, which all nodes see: $waiting.
held_late() {
    within 120 is_idle || diag "$1: $third is not back"
    late "$1"
    job=$(sandbox_run squeue --noheader --name=late --format=%A)
    waiting=$(sandbox_run --root pgrep -d, -u 12000 -f "^slurmstepd: \\[$job\\.0")
    [[ $waiting = *,* ]] || diag "$1: these wait: $waiting"
}
are_gone() { ! sandbox_run --root ps -p "$waiting" >/dev/null; }
signal_srun() { sandbox_run --root pkill "-$1" -f "^srun --job-name=late"; }
late "a late node"
like "$port" '^[0-9]+$' "a node comes late: the others wait at srun"
sandbox_run --root nice -n 19 "${other[@]}" "$work/stranger" attack login "$port" 2 >"$work_here/told" 2>&1
sandbox_run --root nice -n 19 "${other[@]}" "$work/stranger" idle login "$port" 250 3 >>"$work_here/told" 2>&1 &
idle=$!
for purpose in ports watch; do
    is "$(sandbox_run "$work/stranger" hello login "$port" - ports $purpose 1 0)" refused "an unauthenticated peer there, as $purpose: rejected"
done
slurmd_on "$third" CONT
ends
is "$status $(judge <<<"$out")" "0 3 tasks" "the step starts, with strangers at srun's port" || diag "$err"
wait $idle
is "$(cat "$work_here/told")" "" "unauthenticated peers got no answer"
is "$(sandbox_run srun --hpc-train "${both[@]}" bash -c 'compgen -v SLURM_HPC_TRAIN; echo none')" $'none\nnone' "tasks do not have srun's variables"

held_late "srun is stopped"
signal_srun STOP
sandbox_run scancel "$job"
within 30 are_gone
ok $? "srun is stopped: scancel ends the tasks that wait for it"
signal_srun CONT
slurmd_on "$third" CONT
ends
ok "$([ "$status" != 0 ]; echo $?)" "the step fails"
held_late "Ctrl-C"
# Twice within a second, on a busy machine too.
sandbox_run --root sh -c 'i=0; while [ $i -lt 60 ] && pkill -INT -f "^srun --job-name=[l]ate"; do sleep 0.3; i=$((i + 1)); done' &
sleep 2
slurmd_on "$third" CONT
within 30 are_gone
ok $? "Ctrl-C ends the tasks, too"
ends
ok "$([ "$status" != 0 ]; echo $?)" "the step fails"
held_late "srun is killed"
signal_srun KILL
within 30 are_gone
ok $? "nor do they stay without srun"
slurmd_on "$third" CONT
ends
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained by any of this"
done_testing
