#!/bin/bash
# plugin_safety.t: an ordinary user cannot make root touch what is not the job's, nor drain a node.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
node=$(all_nodes | tail -n 1)
parent=/tmp/hpc-train

# shellcheck disable=SC2016
run_on() { capture sandbox_run srun -N1 -w "$node" --hpc-train "$@"; }

# ---- the parent is root's ----
run_on true
ran "a first job runs"
is "$(on_node "$node" stat -c '%U %a' $parent)" "root 711" "the parent belongs to root, and users may only pass through"
run_on bash -c "touch $parent/x || mkdir $parent/999999 || mv $parent $parent.old || rmdir $parent; ls $parent"
ok "$([ "$status" != 0 ]; echo $?)" "a user can neither write, nor list, nor move it"
no_job_left "$node" "nothing of the user's is there"
# shellcheck disable=SC2016
run_on bash -c 'stat -c "%U %a" $SLURM_TMPDIR; echo job=$SLURM_JOB_ID'
like "$out" "^user 700" "the job's directory is the user's alone"

# ---- links planted where root works ----
on_node "$node" bash -c 'mkdir -p /tmp/precious && echo keep >/tmp/precious/file && chmod 755 /tmp/precious'
run_on bash -c 'rm -rf $SLURM_TMPDIR/* && ln -s /tmp/precious $SLURM_TMPDIR/link && ln -s /tmp/precious $SLURM_TMPDIR/.hpc-train2
    rm -rf $SLURM_TMPDIR/.hpc-train && ln -s /tmp/precious $SLURM_TMPDIR/.hpc-train; echo job=$SLURM_JOB_ID'
is_clean "$(job_of "$out")" "a directory full of links"
is "$(on_node "$node" bash -c 'cat /tmp/precious/file; stat -c %U:%a /tmp/precious')" $'keep\nroot:755' "the links' targets are unchanged"

# Somebody took the parent's name before the first job did (as could happen in a sticky folder).
on_node "$node" bash -c "rm $parent/.boot; rmdir $parent && mkdir $parent && chown 12000:12000 $parent"
run_on true
is "$status" 78 "a parent of another owner is refused"
capture sandbox_run srun -N1 -w "$node" -n8 --hpc-train true
is "$(grep -c "hpc-train: .*belongs to user" <<<"$err")" 1 "eight tasks print the error once"
like "$err" "$parent belongs to user 12000, not to root" "the error names the owner"
on_node "$node" bash -c "rmdir $parent && ln -s /tmp/precious $parent"
run_on true
is "$status" 78 "a parent that is a link is refused"
is "$(on_node "$node" ls /tmp/precious)" file "nothing is created at the link's target"
on_node "$node" bash -c "rm $parent && mkdir -m 777 $parent"
run_on true
like "$status $err" "^78 .*can be written by others" "a parent open to all is refused"
on_node "$node" rmdir $parent
capture sandbox_run srun -N1 -w "$node" true
is "$status" 0 "jobs without hpc-train run all the same"
run_on true
ran "with hpc-train, too, once the path is free"
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained by any of this"

# ---- variables and options that want to reach root ----
hostile=$'$(touch /tmp/owned);`touch /tmp/owned`\n../../../tmp/owned'
for variable in SLURM_JOB_ID SLURM_STEP_NODELIST SLURM_STEP_TASKS_PER_NODE SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE SLURM_TMPDIR TMPDIR \
    SLURM_HOSTFILE SLURM_STEP_RESV_PORTS SLURM_RESTART_COUNT HPC_TRAIN_CONFIG_FILE CUDA_VISIBLE_DEVICES SLURM_GPUS_ON_NODE; do
    capture sandbox_run srun -N1 -w "$node" --hpc-train --export="ALL,$variable=${hostile//,/}" true
    ok "$([ "$status" -lt 128 ]; echo $?)" "a hostile $variable ends in an orderly way ($status)"
done
long=$(printf 'x%.0s' {1..100000})
capture sandbox_run srun -N1 -w "$node" --hpc-train --export="ALL,SLURM_HOSTFILE=/$long" true
is "$status" 0 "a very long variable does no harm"
is "$(on_node "$node" bash -c 'ls -d /tmp/owned /owned 2>/dev/null')" "" "nothing was run or made"

# ---- processes that outlive the job ----
run_on bash -c 'cd $SLURM_TMPDIR && mkdir -p a/b && (setsid sleep 30 & cd a/b && exec 9>held && setsid sleep 30 &) ; echo job=$SLURM_JOB_ID'
is_clean "$(job_of "$out")" "a process left in the directory"
run_on bash -c 'p=$SLURM_TMPDIR; for i in $(seq 300); do mkdir d; cd d; done; echo job=$SLURM_JOB_ID'
is_clean "$(job_of "$out")" "a deep tree"
run_on bash -c 'cd $SLURM_TMPDIR && mkdir ro && touch ro/file && chmod 0 ro && chmod 500 . ; echo job=$SLURM_JOB_ID'
is_clean "$(job_of "$out")" "folders without permissions"
on_node "$node" rm -rf /tmp/precious

# ---- a node that starts its tasks late still learns that the step has failed ----
other=$(all_nodes | head -n 1)
port=24321
on_node "$other" timeout 60 python3 -c "
import socket, time
s = socket.socket(); s.bind(('', $port)); s.listen(); time.sleep(55)" &
listener=$!
late() { on_node "$node" bash -c "pgrep -x \"slurmd(-wlm)?\" | while read -r pid; do
    [ \"\$(nsenter --target \$pid --uts hostname)\" = $node ] && kill -$1 \$pid; done"; }
for ((i = 0; i < 300; i++)); do on_node "$other" grep -q ":$(printf %04X $port) 00000000:0000 0A" /proc/net/tcp && break; sleep 0.1; done
late STOP
(sleep 3 && late CONT) &
start=$SECONDS
capture sandbox_run srun -N2 -w "$other,$node" --hpc-train-port=$port sleep 300
ok "$([ "$status" != 0 ] && [ $((SECONDS - start)) -lt 90 ]; echo $?)" "a node that is late does not keep a failed step ($((SECONDS - start)) s)"
like "$err" "port $port on $other cannot be used" "the error says why"
kill $listener
wait
is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "no node is drained by any of this"

done_testing
