#!/bin/bash
# plugin_scripts.t: job scripts that would lose results without a word, or put them where nobody looks: options that sbatch
# does not read, variables that --export leaves out, places that go with the job, names that steps and jobs share.
# shellcheck disable=SC2016,SC2154 # the cluster expands; lib.sh sets out, err and status

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin

res=$work/out res_here=$work_here/out
files() { (cd "$res_here" 2>/dev/null && find . -type f -printf '%P\n' | sort | xargs); }
clear_out() { sandbox_run bash -c "rm -rf '$res' '$work'/hpc-train-lost.*"; }
# script LINE...: submits one from $work and waits; its output is in $said.
script() {
    printf '%s\n' '#!/bin/bash' "#SBATCH --output=$work/said" "$@" >"$work_here/script"
    rm -f "$work_here/said"
    capture sandbox_run sbatch --wait --chdir="$work" "$work/script"
    said=$(cat "$work_here/said" 2>/dev/null)
}
cat >"$work_here/task" <<'END'
#!/bin/bash
mkdir -p "$SLURM_TMPDIR/res"
echo "${1:-result}" >"$SLURM_TMPDIR/res/model"
sleep "${2:-0}"
END
chmod 755 "$work_here/task"
task=$work/task

# ---- what sbatch does not read, or cuts ----
script '#SBATCH -N1' 'set -e' "#SBATCH --hpc-train-stage-out=res:$res" "srun '$task'"
like "$status $err" "^64 .*line 5 of '$work/script': sbatch reads no #SBATCH lines behind the script's first command" \
    "an option behind the first command is refused"
script '#SBATCH -N1' "#SBATCH --hpc-train-stage-out=res:$res/run#1" "srun '$task'"
like "$status $err" "^64 .*line 4 of '$work/script': sbatch takes '#' for the begin of a remark" "a value that '#' would cut is refused"
script '#SBATCH -N1' "#SBATCH --hpc-train-stage-out=\"res:$res/run#1\"" "srun '$task'"
is "$status $(files)" "0 run#1/model" "a quoted value is taken literally"
clear_out
script '#SBATCH -N1' "cat >'$work/inner' <<E" '#!/bin/bash' \
    "#SBATCH -N1 --output=/dev/null --hpc-train-stage-out=res:$res/inner" "srun '$task'" 'E' "sbatch --wait '$work/inner'"
is "$status $(files)" "0 inner/model" "a script that writes and submits another is not checked"
clear_out
printf '%s\n' '#!/bin/bash' "srun '$task'" >"$work_here/plain"
capture sandbox_run sbatch -N1 --output=/dev/null "$work/plain" --hpc-train-stage-out="res:$res"
like "$status $err" "^64 .*stands behind '$work/plain', which looks at none of its arguments" "an option behind the script's name is refused"
printf '%s\n' '#!/bin/bash' "srun \"\$@\" '$task'" >"$work_here/passes"
capture sandbox_run sbatch --wait -N1 --output=/dev/null "$work/passes" --hpc-train-stage-out="res:$res"
is "$status $(files)" "0 model" "if the script passes its arguments on, the option is srun's"
clear_out
capture sandbox_run srun -N1 --hpc-train-stage-out="res:$res"$'\r' "$task"
like "$err" "'$res' ends with a carriage return" "a value from a text with DOS line ends is refused"
capture sandbox_run env HPC_TRAIN_STAGEOUT="res:$res" srun -N1 --hpc-train "$task"
like "$status $err" "^64 .*HPC_TRAIN_STAGEOUT means nothing" "a variable that is misspelt is refused"

# ---- --export ----
script '#SBATCH -N1 --export=NONE' "export HPC_TRAIN_STAGE_OUT=res:$res" "/usr/bin/srun '$task'"
is "$status $(files)" "0 model" "--export=NONE leaves out no option that a variable stands for"
clear_out
capture sandbox_run env HPC_TRAIN_STAGE_OUT="res:$res" sbatch --wait -N1 --export=NONE --output=/dev/null --wrap "/usr/bin/srun '$task'"
is "$status $(files)" "0 model" "nor does --export=NONE of sbatch"
clear_out
capture sandbox_run env HPC_TRAIN_STAGE_OUT="res:$res" srun -N1 --export=NONE /bin/bash -c \
    "/usr/bin/env | /usr/bin/grep -c SLURM_DEFAULT; PATH=/usr/bin:/bin '$task'"
is "$out $(files)" "0 model" "by variables that tasks do not see"
clear_out
capture sandbox_run srun -N1 --export="ALL,HPC_TRAIN_STAGE_OUT=nothing:$res" "$task"
like "$status $err" "^64 .*HPC_TRAIN_STAGE_OUT came by --export alone" "a list that srun does not see is refused"

# ---- places that go with the job, or are the node's own ----
script '#SBATCH -N1 --hpc-train' 'cd "$SLURM_TMPDIR"' "srun --hpc-train-stage-out=res:results '$task'" 'exit $?'
like "$status $said" "^64 .*destination '/tmp/hpc-train/[0-9]*/results' lies in the job directory" "the job directory is not a destination"
script '#SBATCH -N2 --ntasks-per-node=1' '#SBATCH --hpc-train-stage-out=res:out/%n' 'cd "$SLURM_TMPDIR"' "srun '$task'"
is "$status $(files)" "0 0/model 1/model" "a script's own option starts from the script's folder, on all nodes, wherever the script has gone"
clear_out
capture sandbox_run srun -N1 --chdir=/nowhere --hpc-train-stage-out=res:results "$task"
like "$status $err" "^64 .*'results' would be copied to the node's own /tmp" "nor is /tmp, where Slurm goes when it cannot enter a folder"

# ---- names that steps and jobs share ----
# Numbers that are not a job's own by chance.
sandbox_run mkdir "$work/901x902"
script '#SBATCH -N1 --array=901-902' "#SBATCH --output=$work/said.%a" \
    "srun --hpc-train-stage-out=res:$work/901x902/out '$task' \$SLURM_ARRAY_TASK_ID"
like "$status $(cat "$work_here/said.901")" "^64 .*each job of the array would write to" "a path with the numbers of all jobs of an array is at most the last one's own"
is "$(cat "$work_here/901x902/out/model")" 902 "whose result is there"
script '#SBATCH -N2 -n2' "for i in 0 1; do srun -N1 -n1 -r\$i --hpc-train-stage-out=res:$res bash -c \"'$task'; mv \\\$SLURM_TMPDIR/res/model \\\$SLURM_TMPDIR/res/model\$i\" & done" \
    'wait %1; a=$?; wait %2; echo $a $?'
is "$said $(files)" "0 0 model0 model1" "separate names in one folder"
clear_out
cat >"$work_here/log" <<'END'
#!/bin/bash
mkdir -p "$SLURM_TMPDIR/res"
for k in {1..300}; do echo "$k" >>"$SLURM_TMPDIR/res/log$1"; done
touch "$SLURM_TMPDIR/done$1" # a file that still grows is not copied out
until [ -e "$SLURM_TMPDIR/done1" ] && [ -e "$SLURM_TMPDIR/done2" ] && [ -e "$SLURM_TMPDIR/done3" ]; do sleep 0.1; done
sleep "0.$1"
END
chmod 755 "$work_here/log"
script '#SBATCH -N1' 'export SLURM_OVERLAP=1' "for i in 1 2 3; do srun -n1 --hpc-train-stage-out=res:$res '$work/log' \$i & done" \
    'for i in 1 2 3; do wait %$i || echo failed; done'
is "$said $(wc -l "$res_here"/log* | awk 'END { print $1 }')" " 900" "steps on one node replace what they have put there themselves"
clear_out
script '#SBATCH -N1 -n1 --hpc-train' '#SBATCH hetjob' '#SBATCH -N1 -n1' \
    "for i in 0 1; do srun --mpi=none --het-group=\$i --hpc-train-stage-out=res:$res/%n '$task' \$i 1 & done" 'wait'
is "$(sort "$res_here"/*/model | xargs) $(files)" "0 1 0/model 1/model" "%n counts the nodes of a job's components through"
clear_out

# ---- steps and jobs at once, with one destination ----
# both NAME STATUSES: model of one and of the other step are there, and which statuses there were.
both() {
    is "$(xargs -n1 <<<"$2" | sort -n | xargs) $(cat "$res_here"/*/model* | sort | xargs) $(find "$res_here" -name model | wc -l)" "0 74 one two 1" "$1: both are kept, one beside the other, with 74" ||
        diag "$said" "$(files)"
    clear_out
}
script '#SBATCH -N2 -n2 --hpc-train' "for i in one two; do srun -N1 -n1 --exact --hpc-train-stage-out=res:$res/x '$task' \$i 4 & pids+=(\$!); done" \
    'for pid in "${pids[@]}"; do wait $pid; echo $?; done'
both "two steps of a job" "$(grep -E '^[0-9]+$' <<<"$said" | xargs)"
like "$said" "since this step began, another step.*give each a destination of its own" "and what to do"
pids=() statuses=
for i in one two; do
    sandbox_run srun -N1 --exclusive --hpc-train-stage-out="res:$res/x" "$task" $i 4 2>/dev/null &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; statuses+=" $?"; done
both "two jobs" "$statuses"
for i in one two; do capture sandbox_run srun -N1 --hpc-train-stage-out="res:$res/x" "$task" $i || diag "$err"; done
is "$status $(files) $(cat "$res_here/x/model")" "0 x/model two" "one after the other, the later one replaces the earlier one's"
clear_out

# ---- a job that a job submits ----
printf '%s\n' '#!/bin/bash' 'echo "<${SLURM_TMPDIR-}${RANK-}${TF_CONFIG-}>"' \
    "srun bash -c 'echo \"<\${SLURM_TMPDIR-}\${RANK-}>\"'" >"$work_here/second"
script '#SBATCH -N1' "#SBATCH --hpc-train-stage-out=res:$res" "srun '$task'" "sbatch --wait -N1 --output='$work/second.out' '$work/second'; echo \$?" \
    "srun bash -c \"sbatch --wait -N1 --output='$work/third.out' '$work/second'; echo \\\$?\""
is "$status $(grep -v Submitted <<<"$said" | xargs)" "0 0 0" "the first job's results do not concern the second"
is "$(cat "$work_here/second.out" "$work_here/third.out" | xargs)" "<> <> <> <>" "nor has it the first one's directory and variables"
clear_out
capture sandbox_run env SLURM_ARRAY_TASK_ID=3 srun -N1 --hpc-train-stage-out="res:$res" "$task"
is "$status $(files)" "0 model" "a variable that is left of an array makes none"

done_testing
