#!/bin/bash
# collisions.t: results of steps and jobs that run at the same time and have one destination: nothing is replaced by another's,
# whatever the file system supports.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=${top_builddir:?run by make check}/hpc-train-stage
module=$top_builddir/tests/stage/.libs/old_fs.so
work=$(folder_in_memory hpc-train-collisions)
at_exit "rm -rf '$work'"
cd "$work" || exit
mkdir a a/.hpc-train b b/.hpc-train out
unset SLURM_TMPDIR SLURM_JOB_ID SLURM_STEP_ID SLURM_NODEID SLURM_PROCID

now() { python3 -c 'import time; print(int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1000))'; }
# began DIR JOB STEP LIST: the record of a step that begins now in the job directory DIR.
began() { printf 'job=%s\0step=%s\0node=0\0umask=18\0start=%s\0cwd=%s\0list=%s\0task=0\0end=\0' "$2" "$3" "$(now)" "$work" "$4" >"$1/.hpc-train/out.$3"; }
# ends DIR STEP: it ends.
ends() { capture limit 60 env ${missing:+LD_PRELOAD="$module" OLD_FS="$missing"} "$stage" --out --from "$1" --record "out.$2"; }
# What came in the first moment of a step is not told from what was there before.
later() { sleep 0.2; }
reset() { chmod -R u+rwx out && rm -rf out a/* b/* a/.hpc-train/* b/.hpc-train/* && mkdir out; }

for missing in '' born 'flags born' 'flags born twice' 'flags born links'; do
    on="${missing:+ (without $missing)}"
    # ---- two steps at once ----
    reset
    echo one >a/model && echo two >b/model
    began a 8 0 model:out/
    began b 9 1 model:out/
    later
    ends a 0
    is "$status$err $(cat out/model)" "0 one" "the first of two steps has its name$on"
    ends b 1
    is "$status $(cat out/model) $(cat out/model.9.1.0) $(ls -A out | xargs)" "74 one two model model.9.1.0" "the second is kept beside it, 74$on"
    like "$err" "model to $work/out/model: since this step began, another step.*'model.9.1.0'.*%j" "which is said, and what to do"
    is "$(ls -A b/.hpc-train)" copied "there is nothing to try again"
    # ---- what is replaced ----
    reset
    echo earlier >out/model && echo earlier >out/changed && mkdir out/f && ln -s earlier out/f/link
    later
    echo new >a/model && echo new >a/changed && mkdir a/f && ln -s new a/f/link
    began a 8 0 'model:out/,changed:out/,f:out/'
    began a 8 batch 'model:out/'
    later
    [[ $missing = *born* ]] || chmod 600 out/changed
    ends a 0
    is "$status$err $(cat out/model out/changed | xargs) $(readlink out/f/link) $(ls -A out | xargs)" "0 new new new changed f model" "what an earlier step has left is replaced$on"
    echo newer >a/model
    ends a batch
    is "$status$err $(cat out/model) $(ls -A out | xargs)" "0 newer changed f model" "so is an earlier version of the job's own$on"
    # ---- the same content ----
    reset
    head -c 200000 /dev/zero | tee a/zero >b/zero
    mkdir a/f b/f && ln -s zero a/f/l && ln -s zero b/f/l
    began a 8 0 'zero:out/,f:out/'
    began b 9 0 'zero:out/,f:out/'
    later
    ends a 0
    touch b/zero
    ends b 0
    is "$status$err $(ls -A out | xargs)" "0 f zero" "another's file with the same content is not a collision$on"
    # ---- folders: what differs is beside, everything else in its place ----
    reset
    long=$(printf 'n%.0s' {1..255})
    mkdir -p {a,b}/r/sub
    for step in a b; do echo $step | tee $step/r/sub/same $step/r/$step $step/r/$long >$step/r/first && ln $step/r/first $step/r/second && ln -s $step $step/r/link; done
    began a 8 0 r:out/r
    began b 9 0 r:out/r
    later
    ends a 0
    ends b 0
    cut=${long:0:249}.9.0.0
    is "$status $(cd out/r && find . -type f | LC_ALL=C sort | xargs)" \
        "74 ./a ./b ./first ./first.9.0.0 ./$cut ./$long ./second ./second.9.0.0 ./sub/same ./sub/same.9.0.0" "folders come together$on"
    is "$(cd out/r && cat first second sub/same "$long" | xargs; cat first.9.0.0 second.9.0.0 sub/same.9.0.0 "$cut" | xargs; readlink link link.9.0.0 | xargs)" \
        $'a a a a\nb b b b\na b' "each with its own content, names, hard links and links$on"
done

# ---- the last try ----
missing=
reset
echo one >a/model && echo two >b/model
began a 8 0 model:out/
began b 9 0 model:out/
later
ends a 0
capture limit 60 "$stage" --out --from b --all
is "$status $(cat out/model out/model.9.0.0 | xargs) $(ls hpc-train-lost* 2>/dev/null)" "74 one two " "the epilog's last try keeps both, and nothing is lost"
is "$(ls -A b/.hpc-train)" copied "and it is done"

# ---- entries of one list ----
reset
mkdir a/x a/y && echo x >a/x/f && echo y >a/y/f && echo z >b/f
capture limit 60 "$stage" --out --from a 'x/*:out' 'y/f:out/'
is "$status $(cat out/f out/f.0.batch.0 | xargs)" "74 x y" "two entries with one name"
like "$err" "another step, job or SRC" "which is said"
capture limit 60 "$stage" --out --from b f:out/
is "$status $(cat out/f)" "0 z" "a later command replaces it, as cp does"

# ---- at the same moment ----
for missing in slow 'slow born'; do
    reset
    echo old >out/model
    later
    echo one >a/model && echo two >b/model
    began a 8 0 model:out/
    began b 9 0 model:out/
    later
    pids=()
    for step in a b; do
        env LD_PRELOAD="$module" OLD_FS="$missing" "$stage" --out --from $step --record out.0 2>/dev/null &
        pids+=($!)
    done
    statuses=
    for pid in "${pids[@]}"; do wait "$pid"; statuses+=" $?"; done
    is "$(xargs -n1 <<<"$statuses" | sort -n | xargs) $(cat out/* | sort | xargs) $(ls -A out | wc -l)" "0 74 one two 2" \
        "two that replace one old file at the same moment (${missing#slow }): both are there"
done

done_testing
