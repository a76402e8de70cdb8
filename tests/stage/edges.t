#!/bin/bash
# edges.t: hpc-train-stage with the sources that users really have: read-only trees, links to links, names in any
# script, programs that change what was staged. As an ordinary user: root may open files of all modes.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=${top_builddir:?run by make check}/hpc-train-stage
work=$(folder_in_memory hpc-train-edges)
at_exit "chmod -R u+rwx '$work' 2>/dev/null; rm -rf '$work'"
cp "$(dirname "$stage")/.libs/hpc-train-stage" "$work/stage" 2>/dev/null || cp "$stage" "$work/stage"
chmod 777 "$work"
cd "$work" || exit

as=()
[ "$(id -u)" = 0 ] && as=(setpriv --reuid=12345 --regid=12345 --clear-groups)
user() { "${as[@]}" "$@"; }
# What took long, on a busy machine, ends with a line that does not matter here.
run() { capture limit 60 "${as[@]}" "$work/stage" "$@"; err=$(grep -vE ' files?, .* in [0-9.]+ s' <<<"$err"); }
user mkdir to

# ---- read-only ----
user mkdir -p ro/sub
user bash -c 'echo x >ro/f; echo y >ro/sub/g; chmod 444 ro/f; chmod 555 ro/sub ro'
run --to to ro
is "$status $err" "0 " "a read-only folder is staged"
is "$(stat -c %a to/ro to/ro/sub to/ro/f | xargs)" "555 555 444" "and keeps its modes"
run --to to ro
like "$err" "already, unchanged" "and is recognized as unchanged"
user bash -c 'chmod 755 ro; echo z >ro/new; chmod 555 ro'
run --to to ro
is "$status $(cat to/ro/new)" "0 z" "and is replaced when it changed"
run --to to ro/f:ro
is "$status $(cat to/ro)" "0 x" "also by a file"
is "$(ls -A to/.hpc-train)" $'lock\nstaged' "nothing else is left"

# ---- further names ----
user bash -c 'mkdir names; echo one >names/a; ln names/a names/b; ln names/a names/z'
run --to to names
run --to to names
like "$err" "already, unchanged" "a file with several names is found again"
user bash -c 'echo two >x; touch -r to/names/b x; mv x to/names/b'
run --to to names
is "$status $(cat to/names/b)" "0 one" "a hard link whose content was changed: staged again"
user bash -c 'cd to/names; echo six >x; touch -r a x; ln -f x a; ln -f x b; ln -f x z; rm x'
run --to to names
is "$status $(cat to/names/z)" "0 one" "all names of the file are"
user bash -c 'cd names; tar cf ../names.tar z a b'
run --to to --mode extract names.tar:unpacked
user bash -c 'cd to/unpacked; t=$(stat -c %y z); echo BAD >z; touch -d "$t" z'
run --to to --mode extract names.tar:unpacked
is "$status $(cat to/unpacked/a)" "0 one" "so is an archive's content, in any order"
run --to to --mode extract names.tar:unpacked
like "$err" "already, unchanged" "then it is recognized as unchanged"

# ---- links ----
python3 - <<'END'
import tarfile
with tarfile.open("climb.tar", "w") as t:
    for name, kind, link in (("d", tarfile.DIRTYPE, ""), ("d/e", tarfile.DIRTYPE, ""),
                             ("d/e/in", tarfile.SYMTYPE, "../../x"), ("out", tarfile.LNKTYPE, "d/e/in")):
        i = tarfile.TarInfo(name)
        i.type, i.linkname, i.mode = kind, link, 0o755
        t.addfile(i)
END
run --to to --mode extract climb.tar:climb
is "$status" 65 "a further name of a link, from where it leads out: status 65"
like "$err" "climb.tar/out is a link to '../../x', out of the folder" "the error names the link"
is "$(ls to | grep climb)" "" "nothing is left"
user bash -c 'mkdir -p far/sub tree; echo far >far/b; echo tree >tree/b; ln -s ../b far/sub/link; ln -s ../far/sub tree/ext'
run --links follow --to to tree
is "$status $(cat to/tree/ext/link)" "0 far" "a link within a followed folder leads where it led"

# ---- names ----
python3 - <<'END'
import io, tarfile, zipfile
with zipfile.ZipFile("names.zip", "w") as z:
    z.writestr("\u00e9/\u65e5\u672c.txt", "zip")
with tarfile.open("odd.tar", "w") as t:
    for name in ("\u65e5\u672c", "\udcff\udcfe", "with\nline"):
        i = tarfile.TarInfo(name)
        i.size = 3
        t.addfile(i, io.BytesIO(b"tar"))
END
run --to to --mode extract names.zip odd.tar
is "$status$err" 0 "archives with names in any script are unpacked"
is "$(cat $'to/names.zip/\xc3\xa9/\xe6\x97\xa5\xe6\x9c\xac.txt')" zip "zip"
is "$(cat $'to/odd.tar/\xe6\x97\xa5\xe6\x9c\xac' $'to/odd.tar/\xff\xfe' $'to/odd.tar/with\nline')" tartartar "tar"

# ---- deep ----
user bash -c 'ulimit -s 1024; p=deep; for i in $(seq 250); do p=$p/d; done; mkdir -p $p; echo end >$p/f; ./stage --quiet --to to deep 2>errors'
is "$? $(cat errors)" "0 " "250 folders deep, with little stack"

# ---- out ----
user mkdir -p job shared
for i in 1 2 3 4; do head -c 30M /dev/zero | tr '\0' "$i" >"job/$i"; done
chmod 644 job/*
for ((round = 0; round < 5; round++)); do
    pids=() failed=
    for i in 1 2 3 4; do
        SLURM_PROCID=$i SLURM_JOB_ID=1 user ./stage --out --from job "$i:shared/" 2>>errors &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    for i in 1 2 3 4; do cmp "job/$i" "shared/$i" >>errors 2>&1 || failed=1; rm -f "shared/$i"; done
    [ -n "$failed" ] && break
done
is "$failed$(cat errors)" "" "tasks that copy out to one folder at once do not get each other's files"
is "$(ls -A shared)" "" "nothing else is left there"
user bash -c 'mkdir -p job/many/sub && touch job/many/sub/file && chmod 755 job/many job/many/sub'
mkdir project
chown 12345:54321 project 2>/dev/null
chmod 2777 project
run --out --from job many:project/many
is "$status $(stat -c '%a %g' project/many/sub)" "0 2755 $(stat -c %g project)" "folders in a group's folder stay the group's"
pids=() failed=
user bash -c 'for i in $(seq 300); do echo $i >job/many/$i; done'
for i in 1 2 3 4; do
    SLURM_JOB_ID=1 SLURM_STEP_ID=$i user ./stage --out --from job many:shared/all 2>errors.$i &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
is "$failed$(cat errors.*) $(find shared -type f | wc -l) $(ls -A shared)" " 301 all" "steps that make one folder at once share it"
run --out --from job --seconds 0.000001 1:shared/one
user bash -c 'mkdir -p job/.hpc-train; printf "job=9\0step=0\0node=0\0umask=18\0cwd=%s\0list=1:shared/x/%%n,2:/proc/none/x\0task=0\0end=\0" "$PWD" >record'
for i in 1 2; do
    user cp record job/.hpc-train/out.0
    run --out --from job --all
done
is "$(grep -c '/proc/none' hpc-train-lost.9.0.0)" 2 "losses of a requeued job are appended to the list"

done_testing
