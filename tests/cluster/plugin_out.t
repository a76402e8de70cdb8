#!/bin/bash
# plugin_out.t: results on the cluster: copied out by every node as the user, however its tasks end; what is refused before
# the job starts; what the epilog tries again, and how a loss is told.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
on_cluster 2
# shellcheck source=tests/cluster/plugin_lib.sh
. "$(dirname "$0")/plugin_lib.sh"
needs_plugin
state=${HPC_TRAIN_SANDBOX:-$top_srcdir/.sandbox}

# What a task does: results in the job directory, then whatever is asked.
cat >"$work_here/task" <<'END'
#!/bin/bash
mkdir -p "$SLURM_TMPDIR/res"
echo "$SLURMD_NODENAME" >"$SLURM_TMPDIR/res/task$SLURM_PROCID"
echo "job=$SLURM_JOB_ID"
"$@"
END
chmod 755 "$work_here/task"
task=$work/task
res=$work/out res_here=$work_here/out
clear_out() { sandbox_run rm -rf "$res"; }
files() { (cd "$res_here" 2>/dev/null && find . -type f -printf '%P\n' | sort | xargs | head -c 500); }

# ---- the way it should go ----
capture sandbox_run srun -N2 -w node0,node1 -n4 --ntasks-per-node=2 --hpc-train-stage-out="res:$res/%j-%s-%n" "$task" sleep 0.2
ran "a step with results"
job=$(job_of "$out")
is "$(files)" "$job-0-0/task0 $job-0-0/task1 $job-0-1/task2 $job-0-1/task3" "when srun ends, each node's results exist, once per node"
is "$(sandbox_run find "$res" ! -user user)" "" "owned by the user"
is_clean "$job" "results"
clear_out
capture sandbox_run bash -c "cd '$work' && umask 027 && HPC_TRAIN_STAGE_OUT='res/task%t:out/%N.%3t' srun -N2 -w node0,node1 '$task'"
is "$(files)" "node0.000 node1.001" "from the environment, by task, relative to where srun was started"
is "$(stat -c %a "$res_here")" 750 "with the step's umask"
clear_out
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N,nothing:$res/none-%n" "$task"
is "$status $(files)" "66 node0/task0 node1/task1" "a source that is on no node ends srun with 66, and keeps no other"
like "$err" "--hpc-train-stage-out: 'nothing' was not in .SLURM_TMPDIR of any node: nothing is copied to '$res/none-%n'" "reported"
is "$(wc -l <<<"$err")" 1 "in one line"
clear_out
# shellcheck disable=SC2016
rank1='[ $SLURM_PROCID = 0 ] || mkdir "$SLURM_TMPDIR/res"'
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N" bash -c "$rank1"
is "$status $(ls "$res_here") $err" "0 node1 srun: hpc-train: copied 'res' from node1; it was not on the other node" "results of only one node are reported, not an error"
clear_out
# shellcheck disable=SC2016
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N" bash -c '[ $SLURM_PROCID = 1 ] || mkdir "$SLURM_TMPDIR/res"'
is "$status $(ls "$res_here") $err" "0 node0 srun: hpc-train: copied 'res' from node0 (with rank 0); it was not on the other node" "where rank 0 writes for all"
clear_out
# shellcheck disable=SC2016
capture sandbox_run srun -N1 --hpc-train-stage-out="*.h5:$res/,res/*:$res/all,*.none:$res/none" bash -c '
    echo "job=$SLURM_JOB_ID"; cd "$SLURM_TMPDIR" && mkdir res && touch a.h5 b.h5 res/c res/.d'
is "$status $(files)" "66 a.h5 all/c b.h5" "patterns; one that nothing matches is missing"
is "$(sandbox_run scontrol show job "$(job_of "$out")" | grep -o 'ExitCode=.*')" "ExitCode=66:0" "also in srun's own job record"
clear_out

# shellcheck disable=SC2016
capture sandbox_run srun -N2 -w node0,node1 -n4 --ntasks-per-node=2 --hpc-train-stage-out="res:$res/%N" bash -c '
    mkdir -p "$SLURM_TMPDIR/res"; sleep 0.$((SLURM_LOCALID * 6)); echo end >"$SLURM_TMPDIR/res/$SLURM_LOCALID"'
is "$(files)" "node0/0 node0/1 node1/0 node1/1" "a node waits for its last task"
clear_out

# ---- whatever clears the job directory before the results are written ----
# shellcheck disable=SC2016
for form in 'find "$SLURM_TMPDIR" -mindepth 1 -delete' \
    'find "$SLURM_TMPDIR" -delete' \
    'rm -rf "$SLURM_TMPDIR"/* "$SLURM_TMPDIR"/.[!.]*' \
    'rm -rf "$SLURM_TMPDIR"' \
    'rm -rf -- "$SLURM_TMPDIR"/{*,.*}' \
    'shopt -s dotglob; mkdir aside; mv * aside; rm -r aside' \
    'tar -C "$SLURM_TMPDIR" --remove-files -cf /dev/null .' \
    'python3 -c "import os, shutil; shutil.rmtree(os.environ[\"SLURM_TMPDIR\"], ignore_errors=True)"' \
    'git init --quiet && git clean -ffdxq; rm -rf .git .hpc-train' \
    'rm -rf "$(dirname "$SLURM_TMPDIR")"/.records-* .hpc-train' \
    'find /tmp -user "$(id -u)" -delete' \
    'cd /; ls -A "$SLURM_TMPDIR" | sed "s,^,$SLURM_TMPDIR/," | xargs rm -rf'; do
    capture sandbox_run srun -N1 --hpc-train-stage-out="res:$res/x" bash -c 'cd "$SLURM_TMPDIR" && mkdir old && touch old/file .hidden || exit
        (eval "$0") >/dev/null 2>&1
        mkdir "$SLURM_TMPDIR/res" && touch "$SLURM_TMPDIR/res/new"' "$form"
    is "$status $(files)" "0 x/new" "$form" || diag "$err"
    clear_out
done
# shellcheck disable=SC2016
capture sandbox_run srun -N1 --chdir="$work" --hpc-train-stage-out="res:$work/file/x" bash -c 'touch file; rm -rf "$SLURM_TMPDIR"/.hpc-train; mkdir "$SLURM_TMPDIR/res"; echo "job=$SLURM_JOB_ID"'
is "$status" 74 "results that cannot be copied after that are not lost silently"
is_clean "$(job_of "$out")" "cleared"
like "$(cat "$work_here"/hpc-train-lost.*)" "$work/file/x: .*Not a directory" "the file says what is lost"
sandbox_run bash -c "rm -f '$work'/hpc-train-lost.* '$work/file'"
# shellcheck disable=SC2016
capture sandbox_run srun -N1 --chdir="$work" --hpc-train-stage-out="res:$res/x" "$task" bash -c 'chmod 0 "$SLURM_TMPDIR"'
like "$status $err" "^66 .*cannot be read: Permission denied" "a job directory that its user has made unreadable"
unlike "$err" "was not in" "is not told as one without results"
is_clean "$(job_of "$out")" "unreadable"
like "$(cat "$work_here"/hpc-train-lost.*)" "$(job_of "$out") cannot be read: Permission denied" "the file says so"
sandbox_run bash -c "rm -f '$work'/hpc-train-lost.*"
# shellcheck disable=SC2016
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N" "$task" bash -c '[ $SLURM_PROCID = 0 ] || rm -rf "${SLURM_TMPDIR%/*}/.records-$SLURM_JOB_ID/"*'
is "$status $(files)" "74 node0/task0" "without the record of one node srun ends with 74"
clear_out
on_node node1 mount --bind /dev/null /etc/slurm/plugstack.conf
# shellcheck disable=SC2016
capture sandbox_run srun -N1 -w node1 --hpc-train-stage-out="res:$res/x" bash -c 'echo "$SLURM_TMPDIR"'
on_node node1 umount /etc/slurm/plugstack.conf
is "$status $out" "69 " "a node without the plugin: srun ends with 69"
like "$err" "the tasks have run unprepared: the plugin is missing" "and says why"

# ---- however it ends ----
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N" "$task" bash -c 'exit 3'
is "$status $(files)" "3 node0/task0 node1/task1" "a task that fails"
clear_out
# shellcheck disable=SC2016
capture sandbox_run srun -N2 -w node0,node1 --hpc-train-stage-out="res:$res/%N" "$task" bash -c 'kill -9 $$'
is "$status $(files)" "137 node0/task0 node1/task1" "a task that is killed"
clear_out
sandbox_run srun -N2 -w node0,node1 --job-name="out-$$" --hpc-train-stage-out="res:$res/%N" "$task" sleep 60 2>"$work_here/errors" >"$work_here/output" &
for ((i = 0; i < 600; i++)); do [ "$(grep -c job= "$work_here/output" 2>/dev/null)" = 2 ] && break; sleep 0.1; done
sandbox_run scancel --name="out-$$"
wait $!
is "$(files)" "node0/task0 node1/task1" "scancel"
is_clean "$(job_of "$(cat "$work_here/output")")" "scancel"
clear_out
# Storage so slow that KillWait is over first: the helper is stopped while it copies, and again when Slurm lets it go on
# so that it hears the signal.
# shellcheck disable=SC2016
sandbox_run srun -N1 --job-name="slow-$$" --hpc-train-stage-out="res:$res/slow" "$task" bash -c \
    'cd "$SLURM_TMPDIR/res" && seq 20000 | xargs touch' 2>"$work_here/errors" >"$work_here/output" &
# shellcheck disable=SC2016
sandbox_run bash -c '
    for ((i = 0; i < 2000; i++)); do
        for temp in "$1"/.hpc-train-out.*; do [ -e "$temp" ] && break 2; done
        sleep 0.01
    done
    pid=$(pgrep -f "hpc-train-stage --[o]ut")
    kill -STOP $pid
    scancel --name="$2"
    for ((i = 0; i < 600; i++)); do kill -STOP $pid 2>/dev/null || break; sleep 0.1; done' x "$res" "slow-$$"
wait $!
job=$(job_of "$(cat "$work_here/output")")
is_clean "$job" "KillWait"
like "$(cat "$work_here/errors")" "was killed by signal 9" "the message says what killed the helper"
like "$(cat "$work_here/errors")" "not all of 'res:$res/slow' is copied out: .*it is tried once more when the job ends" "the rest is left to the epilog"
is "$(find "$res_here/slow" -type f | wc -l) $(ls -A "$res_here")" "20001 slow" "the epilog copies all of it"
clear_out
cat >"$work_here/job" <<END
#!/bin/bash
#SBATCH --nodes=1 --output=$work/job.out
#SBATCH --hpc-train-stage-out=res:$res/%s
mkdir \$SLURM_TMPDIR/res
srun '$task' >/dev/null
echo script >\$SLURM_TMPDIR/res/script
END
capture sandbox_run sbatch --wait "$work/job"
ran "a batch job"
is "$(files)" "0/task0 batch/script batch/task0" "results of its steps, and finally those of the script"
clear_out


# ---- a script's record ----
# script LINE...: submits one for one node, waits; leaves its status, its output in $out and its record in $record.
script() {
    printf '%s\n' '#!/bin/bash' "#SBATCH -N1 --output=$work/script.out" "$@" >"$work_here/script"
    capture sandbox_run sbatch --parsable --wait --chdir="$work" "$work/script"
    record=$(sandbox_run scontrol show job "${out%%;*}" | grep -Eo '(JobState|ExitCode)=[^ ]*' | xargs)
    out=$(cat "$work_here/script.out")
}
script "#SBATCH --hpc-train-stage-out=Res:$res/x" "srun '$task'" "echo srun=\$?"
is "$status $record" "66 JobState=FAILED ExitCode=66:0" "a source that is not there when a script ends is in the job's record"
like "$out" "srun: hpc-train: 'Res' is not there yet"$'\n'"srun=0" "while its steps, after which others may make it, go on"
like "$(tail -n 4 <<<"$out")" "Res is not there: nothing is copied to $res/x" "reported at the end of the output"
script "#SBATCH --hpc-train-stage-out=res:$res/x" "srun true" "srun '$task'" "rm -r \$SLURM_TMPDIR/res"
is "$status $record $(files)" "0 JobState=COMPLETED ExitCode=0:0 x/task0" "results copied by a step are not missing at the end"
script "#SBATCH --hpc-train-stage-out=Res:$res/x" "exit 3"
is "$status $record" "3 JobState=FAILED ExitCode=3:0" "a script's own status stays"
script "#SBATCH --hpc-train-stage-out=res:$work/script/x" "mkdir \$SLURM_TMPDIR/res"
is "$status $record" "74 JobState=FAILED ExitCode=74:0" "failed copies set the job's status"
sandbox_run bash -c "rm -f '$work'/hpc-train-lost.*"
script "#SBATCH --hpc-train" "srun --hpc-train-stage-out=Res:$res/x '$task'"
is "$status $record" "66 JobState=FAILED ExitCode=66:0" "so do missing results of a step with its own option"
clear_out

script "#SBATCH -N2 --hpc-train-stage-out=res:$res/%n" \
    "for i in 0 1; do srun -N1 -n1 --relative=\$i bash -c 'mkdir -p \$SLURM_TMPDIR/res; hostname >\$SLURM_TMPDIR/res/name' & done; wait"
is "$status $(files) $(sort "$res_here"/*/name | uniq | wc -l)" "0 0/name 1/name 2" "%n is the node's index in the job: steps of one node each have separate names"
clear_out

# ---- asked to end before the time limit, as the manual has it: the tasks save, and their results are copied ----
cat >"$work_here/save" <<'END'
#!/bin/bash
mkdir "$SLURM_TMPDIR/res"
trap 'echo saved >"$SLURM_TMPDIR/res/file"; exit 0' TERM
echo ready
while :; do sleep 0.1; done
END
cat >"$work_here/asked" <<END
#!/bin/bash
#SBATCH --nodes=1 --output=$work/asked.out --hpc-train
trap 'scancel --signal=TERM "\$SLURM_JOB_ID"' USR1
srun --hpc-train-stage-out=res:$res/%j '$work/save' &
wait \$!; wait \$!
echo "srun=\$?"
END
chmod 755 "$work_here/save"
ask() { # what sends the signal, given the job
    job=$(sandbox_run sbatch --parsable "$work/asked")
    for ((i = 0; i < 600; i++)); do grep -qs ready "$work_here/asked.out" && break; sleep 0.1; done
    sandbox_run "$@" "$job"
    for ((i = 0; i < 600; i++)); do grep -qs srun= "$work_here/asked.out" && break; sleep 0.1; done
    is "$(tail -n 1 "$work_here/asked.out") $(cat "$res_here/$job/file")" "srun=0 saved" "${*:1:3}: what the tasks save then is copied"
    sandbox_run rm -f "$work/asked.out"
}
ask scancel --batch --signal=USR1 # as --signal=B:USR1@120 does
ask scancel --signal=TERM         # and --signal=TERM@120
clear_out

# ---- job arrays ----
array() { # NAME [ARGUMENT]...: submits the script for three jobs
    printf '%s\n' '#!/bin/bash' "#SBATCH -N1 --output=$work/array.%a" '#SBATCH --array=1-3' "#SBATCH --hpc-train-stage-out=res:$res/$1" \
        "mkdir \$SLURM_TMPDIR/res; echo \$SLURM_ARRAY_TASK_ID >\$SLURM_TMPDIR/res/m" >"$work_here/array"
    capture sandbox_run sbatch --parsable --wait "${@:2}" "$work/array"
}
array x
like "$status $err" "^64 .*each job of the array would write to '$res/x', one over the other: add %a" "one name for all jobs of an array is an error"
is "$(sandbox_run squeue --noheader --name=array)" "" "before it is queued"
array '%A_%2a'
is "$status $(cd "$res_here" && grep . ./*/m | xargs)" "0 ./${out}_01/m:1 ./${out}_02/m:2 ./${out}_03/m:3" "separate names are accepted"
clear_out
# Numbers that are not in $work's name by chance: a path with a job's own number in it would do.
sed -i 's/=1-3/=901-903/' "$work_here/array"
capture sandbox_run bash -c "cd '$work' && sbatch --wait -N1 --output=array.stdin.%a --hpc-train-stage-out='res:$res/x' < '$work/array'"
is "$status $(files)" "64 " "also if sbatch reads the script from standard input: each job ends before its script"
like "$(cat "$work_here/array.stdin.901")" "each job of the array would write to '$res/x'" "with the message in its output"
printf '%s\n' '#!/bin/bash' "#SBATCH -N1 --array=901-902 --output=$work/array.%a" "srun --hpc-train-stage-out=res:$res/\$1 '$task'" >"$work_here/array"
capture sandbox_run sbatch --wait "$work/array" x
is "$status $(files)" "64 " "srun in a job of an array refuses it, too"
# shellcheck disable=SC2016
sed -i 's/\$1/$SLURM_ARRAY_TASK_ID/' "$work_here/array"
capture sandbox_run sbatch --wait "$work/array"
is "$status $(files)" "0 901/task0 902/task0" "a name that contains the number from the shell is accepted"
clear_out
printf '%s\n' '#!/bin/bash' "srun '$task'" >"$work_here/inner"
script "#SBATCH --array=1-1 --hpc-train" "sbatch --wait -N1 --output=/dev/null --hpc-train-stage-out=res:$res/x '$work/inner'"
is "$status $(files)" "0 x/task0" "a job that a job of an array has submitted is in none, though it has the variables"
clear_out
for name in '%a' '%A'; do
    capture sandbox_run sbatch -N1 --hpc-train-stage-out="res:$res/$name" --wrap=true
    like "$status $err" "^64 .*this job is not in one: write %j for the job, or submit it with --array" "$name is refused where there is no array"
done

# ---- refused before it starts ----
refused() { # NAME COMMAND...
    capture sandbox_run "${@:2}"
    like "$status $err" "^64 .*each node would write to '$res/x', one over the other: add %n .*or %N .*such as '$res/x-%n'" "$1 is refused"
}
refused "one name for two nodes" srun -N2 --hpc-train-stage-out="res:$res/x" touch "$work/ran"
refused "in a job" env HPC_TRAIN=off salloc -N2 srun --hpc-train-stage-out="res:$res/x" touch "$work/ran"
for nodes in -N2 "-lN 2" --nodes=2-3 "-J here --nodes 2"; do
    # shellcheck disable=SC2086
    refused "before it is queued, $nodes" timeout 20 srun --hold $nodes --hpc-train-stage-out="res:$res/x" touch "$work/ran"
done
refused "a step of two components" srun -N1 --hpc-train-stage-out="res:$res/x" touch "$work/ran" : -N1 touch "$work/ran"
refused "a job of two components" sbatch -N1 --hpc-train-stage-out="res:$res/x" : -N1 --wrap="touch '$work/ran'"
refused "a job of two nodes" sbatch -N2 --hpc-train-stage-out="res:$res/x" --wrap="touch '$work/ran'"
refused "an allocation of nobody knows how many" salloc -n8 --hpc-train-stage-out="res:$res/x" touch "$work/ran"
like "$err" "or ask for one node, with -N1" "the error says how to tell"
sed 's/nodes=1/nodes=2/; s/%s/x/' "$work_here/job" >"$work_here/job2"
refused "a script for two nodes" sbatch "$work/job2"
sed 's/%s/x/; s/^mkdir/#SBATCH hetjob\n#SBATCH -N1\n&/' "$work_here/job" >"$work_here/job3"
refused "a script for two components" sbatch "$work/job3"
ok "$([ ! -e "$work_here/ran" ]; echo $?)" "nothing has run"
is "$(sandbox_run squeue --noheader)" "" "nothing is queued"
capture sandbox_run salloc -N1 --hpc-train-stage-out="res:$res/x" srun "$task"
is "$status $(files)" "0 x/task0" "on one node a single name is accepted"
clear_out
for address in http://example.com/x:y s3://bucket/x; do
    capture sandbox_run srun -N1 --hpc-train-stage="$address" true
    like "$status $err" "^(255|64) .*--hpc-train-stage: '$address' is an address: only files and folders" "$address is refused"
done
capture sandbox_run srun --hpc-train-stage-out="../etc:$res/x" true
like "$status $err" "--hpc-train-stage-out: source '../etc' must be a path below" "a source elsewhere is refused"

# ---- as the user and nobody else ----
sandbox_run --root bash -c "mkdir '$work/team' '$work/roots' && chgrp team '$work/team' && chmod 770 '$work/team' && chmod 755 '$work/roots'"
capture sandbox_run srun -N1 --hpc-train-stage-out="res:$work/team/x" "$task"
ran "into a folder writable by one of the user's groups"
is "$(stat -c %u:%g "$work_here/team/x/task0")" 12000:12000 "files are the user's"
capture sandbox_run srun -N1 --chdir="$work" --hpc-train-stage-out="res:$work/roots/x,res/task0:$res/other" "$task"
is "$status $(files)" "74 other" "a destination that may not be written does not keep the others"
like "$err" "res to $work/roots/x: $work/roots/x cannot be written: Permission denied" "the loss is in the step's standard error"
like "$err" "node[0-9]: not all of 'res:.*' is copied out: .*it is tried once more when the job ends" "the message says what happens next"
job=$(job_of "$out")
is_clean "$job" "a loss"
is "$(ls "$work_here/roots")" "" "nothing was written with root's rights"
like "$(cat "$work_here/hpc-train-lost.$job.0.0")" "not copied out of job $job, step 0, node 0.*$work/roots/x: .*Permission denied" "lost results are listed in the step's folder"
is "$(stat -c %u "$work_here/hpc-train-lost.$job.0.0")" 12000 "in a file owned by the user"
like "$(cat "$state"/log/node*.log)" "job $job: results of user 12000 were not copied out and are lost" "and reported in the daemon's log"
sandbox_run rm -f "$work/hpc-train-lost.$job.0.0"
clear_out

# ---- the last try ----
# shellcheck disable=SC2016
capture sandbox_run salloc -N1 --chdir="$work" bash -c '
    touch "$1"
    srun --hpc-train-stage-out="res:$1/a/b" "$2" 2>&1
    rm "$1"' x "$res" "$task"
like "$out" "res to $res/a/b: .*Not a directory.*it is tried once more" "a destination that fails when the step ends"
job=$(job_of "$out")
is_clean "$job" "last try"
is "$(files)" "a/b/task0" "and succeeds when the job ends: it is used then"
is "$(ls "$work_here"/hpc-train-lost* 2>/dev/null)" "" "nothing is listed as lost"
for node in $(all_nodes); do
    no_job_left "$node" "$node: root keeps nothing of it all"
done

done_testing
