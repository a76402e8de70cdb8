#!/bin/bash
# plugin_settings.t: the arguments in plugstack.conf, in a sandbox of its own for each set: right ones act, wrong ones
# neither stop jobs that want nothing of the plugin nor drain a node.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
own_sandbox

with() { # ARGUMENTS...
    "$sandbox" down >/dev/null
    HPC_TRAIN_PLUGSTACK_ARGS="$*" limit 60 "$sandbox" up 2 >/dev/null || { ok 1 "a sandbox with '$*' starts"; exit 1; }
}
undrained() { is "$(sandbox_run sinfo --noheader --Node --states=drain,down,fail --format=%n)" "" "$1: no node is drained"; }

# ---- wrong ones ----
for wrong in unknown=1 tmpdir=relative ports=1 default=maybe "log=info log=info"; do
    with "$wrong"
    capture sandbox_run srun -N2 true
    is "$status" 0 "$wrong: a step without hpc-train runs"
    like "$err" "plugstack.conf: .*${wrong%%=*}" "$wrong: the client names the argument"
    capture sandbox_run srun --hpc-train -N2 true
    is "$status" 78 "$wrong: a step with it is refused"
    capture sandbox_run sbatch --hpc-train --wrap=true
    is "$status" 78 "$wrong: and a batch job"
    capture sandbox_run sbatch --wait --wrap=true
    ran "$wrong: while one without runs"
    undrained "$wrong"
done

# ---- a helper that is not there; a parent that cannot be made ----
with helper=/nowhere/helper tmpdir=/nowhere/jobs
capture sandbox_run srun --hpc-train -N2 true
is "$status" 78 "tmpdir= in a folder that is not there: the step ends with 78"
like "$err" "/nowhere is not a folder that can be used" "the error names the folder"
capture sandbox_run sbatch --wait --hpc-train --output=/shared/home/user/out --wrap=true
ok "$([ "$status" != 0 ]; echo $?)" "a batch job too"
like "$(cat "$own/shared/home/user/out")" "/nowhere is not a folder" "with the message in its output"
undrained "tmpdir="
with helper=/nowhere/helper
capture sandbox_run srun --hpc-train-stage=/etc/hostname -N1 true
is "$status" 78 "helper= that is not there: staging ends with 78"
like "$err" "/nowhere/helper cannot be started: No such file .*helper=" "the error names the helper"
undrained "helper="

# ---- right ones ----
mkdir -p "$own/shared/data" && head -c 2M /dev/zero >"$own/shared/data/two" && chmod -R a+rX "$own/shared"
with tmpdir=/var/tmp/jobs ports=21000-21999 default=on stage_max=1M stage_src=/shared,/srv log=info
# shellcheck disable=SC2016
capture sandbox_run srun -N2 bash -c 'echo "$SLURM_TMPDIR $MASTER_PORT"'
like "$out" "^/var/tmp/jobs/[0-9]+ 21[0-9][0-9][0-9]" "default=on, tmpdir= and ports= act"
capture sandbox_run srun --hpc-train=off -N2 printenv HPC_TRAIN_RANK
is "$out" "" "--hpc-train=off against default=on"
capture sandbox_run srun --hpc-train-stage=/shared/data -N1 true
is "$status" 78 "above stage_max: 78"
like "$err" "2.1 MB are to be staged, but at most 1.0 MB may be" "the error has both sizes"
capture sandbox_run srun --hpc-train-stage=/etc/hostname -N1 true
is "$status" 78 "outside stage_src: 78"
like "$err" "/etc/hostname .* does not lie in a folder that may be staged" "the error names the source"
head -c 1000 /dev/zero >"$own/shared/data/two"
capture sandbox_run srun --hpc-train-stage=/shared/data -N1 true
ran "within both it is staged"
like "$err" "hpc-train-stage: node[01]: 1 file, 1.0 kB, to /var/tmp/jobs/[0-9]+ in" "log=info says what was copied"

done_testing
