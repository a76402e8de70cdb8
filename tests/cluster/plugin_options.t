#!/bin/bash
# plugin_options.t: how the options reach a job's steps (sbatch --export, steps from outside), and values that would be lost
# on the way.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin

# script NAME LINE...: a batch script in $work.
script() {
    printf '%s\n' '#!/bin/bash' "${@:2}" >"$work_here/$1"
    chmod 755 "$work_here/$1"
}
state_of() { sandbox_run squeue --noheader --format=%T --job="$1" 2>/dev/null; }

# ---- sbatch --export: the script's own step has the options, whatever comes of its environment ----
script export.sh 'echo "tmpdir=$SLURM_TMPDIR"' 'echo result >"$SLURM_TMPDIR/r.txt"' \
    '/usr/bin/srun -n1 /bin/sh -c "echo step=\$SLURM_TMPDIR"'
name=0
for export in ALL NONE NIL PATH HOME,PATH LANG,MINE=1; do
    name=$((name + 1))
    capture sandbox_run sbatch --wait --parsable -N1 --export=$export --output="$work/o.$name" \
        --hpc-train-stage-out="r.txt:$work/r.$name" "$work/export.sh"
    ran "--export=$export: the job ends well"
    job=${out%%;*}
    like "$(cat "$work_here/o.$name")" "tmpdir=/tmp/hpc-train/$job"$'\n'"step=/tmp/hpc-train/$job" \
        "--export=$export: script and step have the job's directory"
    is "$(cat "$work_here/r.$name" 2>&1)" result "--export=$export: the script's results are copied out"
done
capture sandbox_run sbatch --wait --parsable -N1 --export=NONE --output="$work/o.off" --hpc-train=off "$work/export.sh"
like "$(cat "$work_here/o.off")" $'tmpdir=\n' "--export=NONE, off: the script has no directory"

# ---- a step from outside finds the directory of a job ----
script wait.sh 'echo hello >"$SLURM_TMPDIR/note"' "touch $work/started" 'sleep 100'
job=$(sandbox_run sbatch --parsable -N1 -O --output=/dev/null --hpc-train "$work/wait.sh")
for ((i = 0; i < 300; i++)); do [ -e "$work_here/started" ] && break; sleep 0.1; done
look='echo "$SLURM_TMPDIR"; cat "$SLURM_TMPDIR/note"; echo "TF=${TF_CONFIG-none}"'
capture sandbox_run srun --overlap --jobid="$job" -N1 -n1 bash -c "$look"
is "$out" "/tmp/hpc-train/$job"$'\nhello\nTF=none' "srun --overlap --jobid: the step has SLURM_TMPDIR, and nothing else"
capture sandbox_run env SLURM_TMPDIR=/tmp/hpc-train/1 srun --overlap --jobid="$job" -N1 -n1 bash -c 'echo "$SLURM_TMPDIR"'
is "$out" "/tmp/hpc-train/$job" "also a job submitted within another job"
capture sandbox_run env SLURM_TMPDIR=/mine srun --overlap --jobid="$job" -N1 -n1 bash -c 'echo "$SLURM_TMPDIR"'
is "$out" /mine "the user's own value is kept"
capture sandbox_run srun --overlap --jobid="$job" -N1 -n1 --hpc-train=off bash -c 'echo "<${SLURM_TMPDIR-}>"'
is "$out" "<>" "with --hpc-train=off it has none"
sandbox_run scancel "$job"
capture sandbox_run srun -N1 -n1 bash -c 'echo "<${SLURM_TMPDIR-}>"'
is "$out" "<>" "a job without hpc-train has none"

# ---- names for a shell ----
refused() { # NAME REGEX COMMAND...
    capture sandbox_run "${@:3}"
    [ "$status" != 0 ]; ok $? "$1: refused" || diag "$out$err"
    like "$err" "$2" "$1: says why"
}
script dollar.sh '#SBATCH --hpc-train-stage-out=res:/shared/out-${SLURM_JOB_ID}/r' 'true'
refused "a variable in an #SBATCH line" "no shell replaces '.' there.*%j for the job" sbatch -N1 --output=/dev/null "$work/dollar.sh"
refused "a variable in SRC of staging in" "no shell replaces" sbatch -N1 --output=/dev/null '--hpc-train-stage=/data/$SET' --wrap=true
refused "a backquote" "no shell replaces '\`'" srun -N1 '--hpc-train-stage=/data/`pwd`' true

# ---- an option given twice ----
script twice.sh '#SBATCH --hpc-train-stage=/shared/a' '#SBATCH --hpc-train-stage=/shared/b' 'true'
refused "two #SBATCH lines" "--hpc-train-stage is given twice, as '/shared/a' and as '/shared/b'.*'/shared/a,/shared/b'" \
    sbatch -N1 --output=/dev/null "$work/twice.sh"
refused "two words for srun" "--hpc-train-env is given twice" srun -N1 --hpc-train-env=tf --hpc-train-env=torch true
refused "two words for salloc" "--hpc-train-port is given twice" salloc -N1 --hpc-train-port=22000 --hpc-train-port=23000 true
is "$(sandbox_run squeue --noheader --user=user --states=PENDING,RUNNING --format=%j)" "" "no job was queued"
script once.sh '#SBATCH --hpc-train-env=tf' '/usr/bin/srun -n1 --hpc-train-env=torch /bin/sh -c "echo \$TF_CONFIG \$RANK"'
capture sandbox_run sbatch --wait -N1 --output="$work/o.once" --hpc-train-env=jax "$work/once.sh"
ran "a command line overrides a script"
is "$(cat "$work_here/o.once")" 0 "a step's option overrides its job's"

done_testing
