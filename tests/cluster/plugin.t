#!/bin/bash
# plugin.t: the SPANK plugin on a real Slurm: options, environment, GPUs, ports, batch jobs, steps.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin

# ---- the environment differs by exactly the documented variables ----
# Values that differ from run to run anyway are cut off; TMPDIR exists in both and so is looked at by itself.
names() { sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p' | LC_ALL=C sort -u; }
capture sandbox_run srun -N2 env
without=$(names <<<"$out")
capture sandbox_run srun --hpc-train -N2 env
ran "srun --hpc-train -N2 env runs"
with=$(names <<<"$out")
common="HPC_TRAIN_CONFIG HPC_TRAIN_CONFIG_FILE HPC_TRAIN_END_TIME HPC_TRAIN_KEY_FILE HPC_TRAIN_LOCAL_RANK HPC_TRAIN_LOCAL_SIZE HPC_TRAIN_NODE_RANK"
common+=" HPC_TRAIN_NUM_NODES HPC_TRAIN_RANK HPC_TRAIN_ROLE HPC_TRAIN_ROLE_INDEX HPC_TRAIN_WORLD_SIZE"
torch="GROUP_RANK LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT RANK WORLD_SIZE"
jax="JAX_COORDINATOR_ADDRESS JAX_NUM_PROCESSES JAX_PROCESS_ID"
# What SPANK itself sets to pass options on.
ours() { LC_ALL=C comm -13 <(echo "$without") - | grep -v '^_*SLURM_SPANK_'; }
sorted() { tr ' ' '\n' <<<"$*" | grep . | LC_ALL=C sort; }
is "$(ours <<<"$with")" "$(sorted "$common $torch $jax TF_CONFIG SLURM_TMPDIR")" "exactly the documented variables are new"
is "$(LC_ALL=C comm -23 <(echo "$without") <(echo "$with"))" "" "no variable is removed"
like "$(grep ^TMPDIR= <<<"$out" | sort -u)" '^TMPDIR=/tmp/hpc-train/[0-9]+$' "TMPDIR is the job directory"
job=$(sed -n 's/^SLURM_JOB_ID=//p' <<<"$out" | head -n 1)
like "$out" "TF_CONFIG=\{\"cluster\":\{\"worker\":\[\"[a-z]+[0-9]+:[0-9]+\",\"[a-z]+[0-9]+:[0-9]+\"\]\},\"task\":\{\"type\":\"worker\",\"index\":1\}\}" "TF_CONFIG has the form that TensorFlow reads"
is_clean "$job" "srun env"

check_env() { # VALUE EXPECTED-NAMES
    capture sandbox_run srun --hpc-train-env="$1" -N2 env
    is "$(names <<<"$out" | ours)" "$(sorted "$common SLURM_TMPDIR $2")" "--hpc-train-env=$1 sets what it says"
}
check_env none ""
check_env mpi ""
check_env tf TF_CONFIG
check_env torch,jax "$torch $jax"

capture sandbox_run srun -N2 env
is "$(names <<<"$out")" "$without" "a step without options is as it was"

# ---- bad values are refused before anything is queued ----
printf '#!/bin/sh\ntrue\n' >"$work_here/true"
sandbox_run --root chmod 755 "$work/true"
refused() { # OPTION MESSAGE
    local command
    for command in srun sbatch salloc; do
        capture sandbox_run "$command" -N1 "$1" "$work/true"
        ok "$([ "$status" != 0 ]; echo $?)" "$command $1 ends with an error"
        like "$err" "$2" "$command $1 says why"
        unlike "$err$out" "[Ss]ubmitted|[Gg]ranted" "$command $1 queues nothing"
    done
}
refused --hpc-train=perhaps "--hpc-train: 'perhaps' is neither on nor off"
refused --hpc-train-env=keras "--hpc-train-env: 'keras' is not a framework"
refused --hpc-train-port=80 "--hpc-train-port: '80' is not a port"
refused --hpc-train-bind=nearest "--hpc-train-bind: 'nearest' is not closest"
refused --hpc-train-stage=/data:../up "below .SLURM_TMPDIR"
refused --hpc-train-strategy=x "unrecognized option"
capture sandbox_run env HPC_TRAIN_PORT=80 srun -N1 true
is "$status" 64 "a bad environment default ends srun with 64"
like "$err" "HPC_TRAIN_PORT: '80' is not a port" "the error names the variable"
capture sandbox_run env HPC_TRAIN_BIND=x sbatch --wrap=true
is "$status" 64 "sbatch ends with 64, too"
unlike "$out" "Submitted" "and queues no job"
for option in hpc-train hpc-train-env hpc-train-port hpc-train-roles hpc-train-stage hpc-train-bind hpc-train-hide hpc-train-network hpc-train-requeue; do
    for command in srun sbatch salloc; do
        ok "$(sandbox_run "$command" --help | grep -q -- "--$option\>"; echo $?)" "$command --help shows --$option"
    done
done
is "$(sandbox_run srun --help | grep -o -- '--hpc-train[a-z-]*' | sort -u | tr '\n' ' ')" \
    "--hpc-train --hpc-train-bind --hpc-train-env --hpc-train-hide --hpc-train-network --hpc-train-port --hpc-train-requeue --hpc-train-roles --hpc-train-stage --hpc-train-stage-mode --hpc-train-stage-out " "and no other option of ours"

# ---- environment defaults; the command line wins ----
capture sandbox_run env HPC_TRAIN_PORT=23100 srun -N1 printenv MASTER_PORT
is "$out" 23100 "HPC_TRAIN_PORT implies --hpc-train"
capture sandbox_run env HPC_TRAIN_PORT=23100 srun -N1 --hpc-train-port=23200 printenv MASTER_PORT
is "$out" 23200 "the command line wins over it"
capture sandbox_run env HPC_TRAIN_PORT=23100 srun -N1 --hpc-train=off printenv MASTER_PORT
is "$out" "" "--hpc-train=off overrides all"
capture sandbox_run env HPC_TRAIN=on srun -N1 printenv HPC_TRAIN_RANK
is "$out" 0 "HPC_TRAIN=on"

# ---- GPUs ----
# shellcheck disable=SC2016 # the tasks expand it
show='echo "$SLURM_PROCID own=$HPC_TRAIN_GPU visible=$CUDA_VISIBLE_DEVICES"'
gpus() { capture sandbox_run srun "$@" bash -c "$show"; out=$(sort -n <<<"$out"); }
gpus --hpc-train -N1 -n3 --gres=gpu:2
is "$out" $'0 own=0 visible=0,1\n1 own=1 visible=0,1\n2 own=0 visible=0,1' "GPUs are given out by local rank, all stay visible"
gpus --hpc-train-hide -N1 -n2 --gres=gpu:2
is "$out" $'0 own=0 visible=0\n1 own=1 visible=1' "--hpc-train-hide shows only the own one"
gpus --hpc-train-bind=map:1,0 -N2 -n4 --ntasks-per-node=2 --gres=gpu:2
is "$(cut -d' ' -f2- <<<"$out" | sort | uniq -c | tr -s ' ')" $' 2 own=0 visible=0,1\n 2 own=1 visible=0,1' "--hpc-train-bind=map"
like "$out" '^0 own=1 ' "maps by local rank"
gpus --hpc-train-bind=none -N1 --gres=gpu:2
is "$out" '0 own= visible=0,1' "--hpc-train-bind=none"
gpus --hpc-train -N1 -n2 --gpus-per-task=1
is "$out" $'0 own=0 visible=0\n1 own=1 visible=1' "Slurm's own binding is kept"
gpus --hpc-train -N1
is "$out" '0 own= visible=' "no GPUs"
capture sandbox_run srun --hpc-train-bind=map:0,2 -N1 -n2 --gres=gpu:2 sleep 60
ok "$([ "$status" != 0 ]; echo $?)" "a map to a GPU that is not there ends the step"
like "$err" "gives local rank 1 the GPU 2, but the task sees 2" "the error says why"
capture sandbox_run srun --hpc-train -N2 --gres=gpu:2 printenv HPC_TRAIN_CONFIG
like "$out" '"tasks":1,"gpus":2\},\{"name":"[a-z0-9]+","tasks":1,"gpus":2\}\],"gpu":"0"' "the config counts GPUs per node"

# ---- ports ----
# A listener on every node, so that it does not matter which one the step gets.
taken=23457
for node in $(all_nodes); do
    on_node "$node" timeout 115 bash -c "exec python3 -c '
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((\"\", $taken)); s.listen(); time.sleep(110)'" &
done
for ((i = 0; i < 300; i++)); do
    busy=0
    for node in $(all_nodes); do on_node "$node" grep -q ":$(printf %04X $taken) 00000000:0000 0A" /proc/net/tcp && busy=$((busy + 1)); done
    [ "$busy" = "$(all_nodes | wc -l)" ] && break
    sleep 0.1
done
start=$SECONDS
capture sandbox_run srun --hpc-train-port=$((taken - 1)) -N1 -n3 sleep 300
ok "$([ "$status" != 0 ] && [ $((SECONDS - start)) -lt 90 ]; echo $?)" "a port in use ends the step"
like "$err" "port $taken on [a-z]+[0-9]+ cannot be used: Address already in use by uid 0, root; choose others with --hpc-train-port" "the error names port, node, user and option"
sandbox_run --root pkill -f "time.sleep[(]110"
wait
capture sandbox_run srun --hpc-train-port=$taken -N1 true
ran "the step runs once the port is free"
capture sandbox_run srun --hpc-train-port=23000-23002 -N1 -n4 true
is "$status" 78 "too narrow a range ends the step"
like "$err" "ports 23000-23002 are too few for 4 tasks" "the error says why"

# Steps at once in one job have ports of their own.
# shellcheck disable=SC2016
capture sandbox_run salloc -N2 -n6 bash -c '
    for i in 1 2 3; do srun --hpc-train --exact -N2 -n2 bash -c "echo \$HPC_TRAIN_CONFIG; sleep 1" & done; wait'
is "$(grep -o 'node[0-9]*:[0-9]*' <<<"$out" | sort | uniq -c | awk '{print $1}' | sort -u)" 2 "no two steps share a port (each address is seen by its own two tasks)"
is "$(grep -o 'node[0-9]*:[0-9]*' <<<"$out" | sort -u | wc -l)" 6 "three steps of two tasks have six addresses"

# ---- batch jobs ----
# shellcheck disable=SC2154 # lib.sh sets it
cat >"$work_here/job.sh" <<'END'
#!/bin/bash
#SBATCH -N2 -n3 --hpc-train-port=23300-24300 --hpc-train-env=torch
echo "job=$SLURM_JOB_ID batch: ${SLURM_TMPDIR} ${TMPDIR} ${HPC_TRAIN_RANK-none} ${MASTER_ADDR-none}"
touch "$TMPDIR/from-batch"
srun -N1 -n1 -w "$SLURMD_NODENAME" bash -c 'echo "step: $HPC_TRAIN_WORLD_SIZE ${TF_CONFIG-none} $MASTER_PORT $(ls $SLURM_TMPDIR)"'
srun --hpc-train=off bash -c 'echo "off: ${SLURM_TMPDIR-none} ${HPC_TRAIN_RANK-none} ${MASTER_ADDR-none} ${TMPDIR-none}"'
RANK=mine srun --hpc-train=off -N1 -n1 bash -c 'echo "own: $RANK"'
srun -N1 -n1 bash -c 'srun --overlap --hpc-train=off -N1 -n1 bash -c "echo nested: \${HPC_TRAIN_RANK-none} \${MASTER_ADDR-none} \${SLURM_TMPDIR-none}"'
srun --hpc-train-env=tf -N1 -n1 bash -c 'echo "changed: ${MASTER_ADDR-none} ${TF_CONFIG:0:11}"'
END
sandbox_run --root chmod 755 "$work/job.sh"
capture sandbox_run sbatch --wait --output="$work/job.out" "$work/job.sh"
ran "a batch job with #SBATCH --hpc-train lines runs"
out=$(cat "$work_here/job.out")
job=$(job_of "$out")
is "$(grep batch: <<<"$out")" "job=$job batch: /tmp/hpc-train/$job /tmp/hpc-train/$job none none" "the script has the directory and no cluster"
like "$out" "step: 1 none 2[34][0-9]* .*from-batch" "its steps are prepared in the same directory"
# Slurm sets TMPDIR=/tmp for the first task of a node
is "$(grep -cE "off: none none none (/tmp|none)$" <<<"$out")" 3 "--hpc-train=off in a step undoes the job's, on all nodes"
like "$out" "own: mine" "and keeps the user's own variables"
like "$out" "nested: none none none" "also if it inherits them from a prepared task"
like "$out" 'changed: none \{"cluster":' "a step's option replaces the job's"
is_clean "$job" "batch job"

capture sandbox_run sbatch --wait --output="$work/array.%a" --array=0-2 --hpc-train --wrap="srun printenv SLURM_TMPDIR"
is "$(cat "$work_here"/array.? | sort -u | wc -l)" 3 "array tasks have separate directories"

# A requeued job starts afresh.
cat >"$work_here/requeue.sh" <<'END'
#!/bin/bash
#SBATCH -N1 --hpc-train --requeue
srun bash -c 'echo "job=$SLURM_JOB_ID run ${SLURM_RESTART_COUNT:-0}: $SLURM_TMPDIR $(ls $SLURM_TMPDIR | wc -l)"; touch $SLURM_TMPDIR/old'
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] && { scontrol requeue "$SLURM_JOB_ID"; sleep 30; }
exit 0
END
sandbox_run --root chmod 755 "$work/requeue.sh"
capture sandbox_run sbatch --output="$work/requeue.out" --open-mode=append "$work/requeue.sh"
job=${out##* }
# A requeued job is held back for minutes, but its begin can be set; not too often, as each time puts it off a little.
for ((i = 0; i < 1500; i++)); do
    grep -q "run 1" "$work_here/requeue.out" 2>/dev/null && break
    ((i % 20)) || sandbox_run scontrol update "JobId=$job" StartTime=now >/dev/null 2>&1
    sleep 0.2
done
out=$(cat "$work_here/requeue.out")
like "$out" "run 0: /tmp/hpc-train/$job 0" "the first run of a job to be requeued"
like "$out" "run 1: /tmp/hpc-train/$job 0" "the second one finds it empty"
is_clean "$job" "requeued job"

done_testing
