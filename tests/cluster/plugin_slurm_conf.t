#!/bin/bash
# plugin_slurm_conf.t: in a sandbox of its own, what slurm.conf can change: nodes whose NodeName is neither their host
# name nor resolves anywhere are reached by the addresses that the tasks are told; ports that Slurm reserves are used; srun
# listens where it may.
# shellcheck disable=SC2016 # the tasks expand

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox
HPC_TRAIN_NODE_NAMES=x HPC_TRAIN_SLURM_CONF=$'MpiParams=ports=13000-13999\nSrunPortRange=41000-41099' limit 60 "$sandbox" up 2 >/dev/null
ok $? "a sandbox starts whose nodes are x0 and x1 to Slurm" || exit 1

# ---- names ----

capture sandbox_run srun -N2 bash -c 'echo "$SLURMD_NODENAME $(hostname) $(getent hosts x0 x1)"'
is "$(sort <<<"$out")" $'x0 node0 \nx1 node1 ' "names and host names differ, and the names resolve nowhere"
capture sandbox_run srun --hpc-train-port=23000 -N2 bash -c 'echo "$SLURM_PROCID $TF_CONFIG $MASTER_ADDR $HPC_TRAIN_CONFIG"'
ran "a step there is prepared"
like "$(sort <<<"$out")" '^0 \{"cluster":\{"worker":\["10.77.1.1:23000","10.77.1.2:23000"\]\}.* 10.77.1.1 ' "ranks have NodeAddr's addresses"
like "$out" '"nodes":\[\{"name":"x0","tasks":1,"gpus":0\},\{"name":"x1"' "nodes have Slurm's names"
# Its ranks meet at these addresses before anything else.
ranks=(srun --hpc-train -N2)
has_pmix || ranks=(salloc --quiet --hpc-train -N2 --ntasks-per-node=1 mpirun)
capture sandbox_run env HPC_TRAIN_JOIN_SECONDS=20 "${ranks[@]}" hpc-train fit --model mnist-cnn \
    --data /usr/share/datasets/fashion-mnist --epochs 1 --steps-per-epoch 2
ran "two ranks of hpc-train connect"
capture sandbox_run srun --mpi=none --hpc-train -N1 -n1 printenv MASTER_ADDR : -N1 -n1 printenv MASTER_ADDR
is "$out" $'10.77.1.1\n10.77.1.1' "also in a step over components" || diag "$status $err"

# ---- reserved ports ----
tell='echo "$SLURM_STEP_RESV_PORTS $TF_CONFIG"'
ports_of() { grep -o '10\.77[.0-9]*:[0-9]*' <<<"$1" | cut -d: -f2 | sort -nu | paste -sd-; }
capture sandbox_run srun --resv-ports=2 --hpc-train -N2 --ntasks-per-node=2 bash -c "$tell"
ran "a step with --resv-ports runs"
like "$out" '^13[0-9]*-13[0-9]* ' "Slurm reserves ports"
is "$(ports_of "$out")" "$(cut -d' ' -f1 <<<"$out" | sort -u)" "reserved ports are used"
capture sandbox_run srun --hpc-train -N2 --ntasks-per-node=2 bash -c "$tell"
like "$(ports_of "$out")" '^13[0-9]*-13[0-9]*$' "also if MpiParams makes Slurm reserve ports by default"
capture sandbox_run srun --resv-ports=1 --hpc-train -N2 -n4 bash -c "$tell"
like "$(ports_of "$out")" '^2[0-9]*-2[0-9-]*$' "too few reserved ports: none is used"
capture sandbox_run srun --resv-ports=0 --hpc-train -N2 -n4 bash -c "$tell"
like "$(ports_of "$out")" '^2[0-9]*-2[0-9-]*$' "no reservation wanted: none is used"
capture sandbox_run srun --resv-ports=2 --hpc-train-port=23900 -N1 printenv MASTER_PORT
is "$out" 23900 "--hpc-train-port overrides them"
capture sandbox_run srun --mpi=none --resv-ports=2 --hpc-train -N1 -n2 bash -c "$tell" : -N1 -n1 bash -c "$tell"
is "$(cut -d' ' -f2 <<<"$out" | sed 's/"task".*//' | sort | uniq -c | awk '{ print $1 }')" 3 "over components all have the same addresses"
# They are one block: there is no other.
mkdir -p "$own/shared" && cp "$top_srcdir/tests/cluster/take.py" "$own/shared"
taken() { on_node node1 grep -c ' 00000000:0000 0A .* 33  ' /proc/net/tcp; }
on_node node1 setpriv --reuid=33 --regid=33 --clear-groups python3 /shared/take.py 13000 13999 listen >/dev/null &
for ((i = 0; i < 600; i++)); do [ "$(taken)" -lt 1000 ] || break; sleep 0.1; done
capture sandbox_run srun --resv-ports=2 --hpc-train -N2 --ntasks-per-node=2 sleep 300
like "$status $err" '^78 .*port 13[0-9]* on x1 cannot be used: Address already in use by uid 33, www-data;' "reserved ports that are taken: 78, port, node and user"
unlike "$err" 'exit code [0-6]|exit code 7[0-79]|port [0-9]* on x0' "all tasks end with 78, and the error is printed once"
sandbox_run --root pkill -f /shared/take.py
wait

# ---- SrunPortRange ----
# While the second node is late, the first one waits at srun.
slurmd_on_x1() {
    sandbox_run --root bash -c 'for pid in $(pgrep -x "slurmd(-wlm)?"); do
        [ "$(nsenter --target $pid --uts hostname)" = node1 ] && kill "-$1" $pid; done; :' slurmd_on_x1 "$1"
}
slurmd_on_x1 STOP
sandbox_run srun --hpc-train -N2 true &
step=$!
port_of_srun() { on_node node0 awk '$4 == "01" && $8 == 12000 { split($3, a, ":"); print a[2]; exit }' /proc/net/tcp | sed 's/^/0x/'; }
for ((i = 0; i < 600; i++)); do
    port=$(($(port_of_srun) + 0))
    [ $port = 0 ] || break
    sleep 0.1
done
slurmd_on_x1 CONT
like "$port" '^410[0-9][0-9]$' "srun listens within SrunPortRange"
wait $step
ok $? "the step runs"
done_testing
