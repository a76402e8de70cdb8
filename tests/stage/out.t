#!/bin/bash
# out.t: hpc-train-stage --out as a command, without a cluster: what is copied out, merged, refused, saved and left behind.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=${top_builddir:?run by make check}/hpc-train-stage
work=$(folder_in_memory hpc-train-out)
at_exit "chmod -R u+rwx '$work' 2>/dev/null; rm -rf '$work'"
cd "$work" || exit
export SLURM_TMPDIR=$work/job SLURM_JOB_ID=42 SLURM_STEP_ID=3 SLURM_NODEID=7 SLURM_PROCID=12
host=$(hostname)
host=${host%%.*}

# Root reads what a user may not; the rest runs without that right.
run() { capture limit 60 setpriv --bounding-set=-dac_override,-dac_read_search "$stage" --out "$@"; }
[ "$(id -u)" = 0 ] || run() { capture limit 60 "$stage" --out "$@"; }

mkdir -p 'job/results/sub dir/empty' job/.hpc-train
printf 'one' >job/results/one
printf 'odd' >$'job/results/sub dir/new\nline \xff"'
head -c 5000000 /dev/urandom >job/results/large
ln -s one job/results/link
ln -s /nowhere/at/all job/results/absolute
chmod 640 job/results/one
touch -d '2001-02-03 04:05:06.789' job/results/one 'job/results/sub dir'
listing() { (cd "$1" && find . -printf '%P|%y|%m|%s|%T@|%l\n' | grep -av '^|' | sed 's/^\([^|]*|d|[0-7]*|\)[0-9]*/\1/' | LC_ALL=C sort); }

# ---- what is copied ----
run results:out/%j/%s-%3n-%N-%%
is "$status" 0 "a folder is copied out"
is "$err" "" "without a word"
to=out/42/3-007-$host-%
is "$(listing $to)" "$(listing job/results)" "to the name that the patterns make, with names, kinds, modes, times and links"
ok "$(cmp job/results/large $to/large >/dev/null; echo $?)" "and content"
is "$(ls -A out/42)" "3-007-$host-%" "and nothing is left beside it"
run results/one:out/folder/ results/one:out/uno .:out/all
is "$status $(cat out/folder/one out/uno) $(ls -A out/all)" "0 oneone results" "into a folder, to a name, and all but our own folder"
truncate -s 300M job/sparse
printf 'in the middle' | dd of=job/sparse bs=1M seek=100 conv=notrunc status=none
run sparse:out/sparse
is "$status $(stat -c %s out/sparse) $(cmp job/sparse out/sparse)" "0 314572800 " "a file with holes"
ok "$([ "$(du -k out/sparse | cut -f1)" -lt 1000 ]; echo $?)" "has them at its destination too: $(du -k out/sparse | cut -f1) KiB"
rm job/sparse out/sparse

# ---- bits that give rights ----
mkdir -p job/bits/sticky job/bits/group
printf 'small' >job/bits/user
head -c 5000000 /dev/zero >job/bits/large
chmod 6755 job/bits/user job/bits/large
chmod 1777 job/bits/sticky
chmod 2775 job/bits/group
run bits:out/bits
is "$status $(stat -c '%a %n' out/bits/* | xargs)" "0 775 out/bits/group 755 out/bits/large 777 out/bits/sticky 755 out/bits/user" \
    "set-user-ID, set-group-ID and sticky bits are not kept"
rm -r job/bits out/bits

# ---- files with several names ----
mkdir -p job/linked/below
echo both >job/linked/a
ln job/linked/a job/linked/b
ln job/linked/a job/linked/below/c
ln job/linked/a job/outside
head -c 100000 /dev/zero >job/linked/large2
ln job/linked/large2 job/linked/large3
names() { (cd "$1" && stat -c '%i %n' a b below/c large2 large3 | awk '{ if (!($1 in n)) n[$1] = ++k; printf "%s=%s ", $2, n[$1] }'); }
run --verbose linked:out/linked
is "$status $(cat out/linked/below/c) $(names out/linked)" "0 both a=1 b=1 below/c=1 large2=2 large3=2 " "files with several names have them at the destination"
like "$err" "2 files, 100 kB" "and are copied once"
cp --remove-destination --preserve=all out/linked/a out/linked/b
echo changed >job/linked/below/c
run linked:out/linked
is "$status $(cat out/linked/b) $(names out/linked)" "0 changed a=1 b=1 below/c=1 large2=2 large3=2 " "again too, when one was a copy of its own and all have changed"
cp --remove-destination --preserve=all out/linked/large2 out/linked/large3
run linked:out/linked
is "$status $(names out/linked)" "0 a=1 b=1 below/c=1 large2=2 large3=2 " "and when one alone is a copy of its own"
is "$(find out/linked -name '.hpc-train*')" "" "without a trace"
rm -r job/linked job/outside
mkdir -p job/t.12
run t.%t:out/t.%5t
ok "$([ -d out/t.00012 ]; echo $?)" "for each task"

# ---- patterns: what they match in one folder ----
mkdir -p job/ckpt/best.pt 'job/odd[1]'
echo 1 >job/ckpt/a.pt
echo 2 >job/ckpt/b.pt
echo 3 >job/ckpt/.hidden.pt
echo 4 >job/ckpt/log.txt
echo 5 >job/ckpt/best.pt/part
echo 6 >job/top.h5
echo 7 >'job/odd[1]/x'
ln -s a.pt job/ckpt/latest.pt
ln -s / job/ckpt/root.pt
ln -s /etc job/outside
run 'ckpt/*.pt:out/pt' '*.h5:out/h5/' 'ckpt/?.pt:out/short' 'ckpt/[!b]*.txt:out/txt' 'odd[1]:out/odd'
is "$status $(cd out && find pt h5 short txt odd | LC_ALL=C sort | xargs)" "0 h5 h5/top.h5 odd odd/odd[1] odd/odd[1]/x pt pt/a.pt pt/b.pt pt/best.pt pt/best.pt/part pt/latest.pt pt/root.pt short short/a.pt short/b.pt txt txt/log.txt" \
    "a pattern: all that it matches, into the folder, with or without a slash"
is "$(readlink out/pt/latest.pt out/pt/root.pt | xargs) $(stat -c %a out/pt)" "a.pt / 755" "links stay links, and the folder is the umask's"
run '*:out/top' '.*:out/dots'
is "$status $(cd out/top && printf '%s ' *) $(ls -A out | grep -c dots)" "66 ckpt odd[1] outside results t.12 top.h5  0" "as a shell has it; our own folder is never among them"
like "$err" "job/\\.\\* is not there: nothing is copied to $work/out/dots" "nor '.' and '..'"
run 'outside/*:out/stolen' 'ckpt/root.pt/*:out/stolen2' 'nothing/*:out/stolen3'
is "$status $(ls -d out/stolen 2>&1)" "66 ls: cannot access 'out/stolen': No such file or directory" "no link leads out of the job directory"
mkdir out/pt/more
echo 8 >job/ckpt/a.pt
run 'ckpt/a*:out/pt'
is "$status $(cat out/pt/a.pt) $(ls out/pt | xargs)" "0 8 a.pt b.pt best.pt latest.pt more root.pt" "again, what else is in the folder stays"
rm -r job/ckpt job/odd* job/top.h5 job/outside out/{pt,h5,short,txt,odd,top}

# ---- job arrays ----
run results/one:out/%A_%a
is "$status $(ls out | grep -c _)" "64 0" "%A and %a are refused out of an array"
export SLURM_ARRAY_JOB_ID=40 SLURM_ARRAY_TASK_ID=2
run results/one:out/%A_%3a-%j
is "$status $(cat out/40_002-42)" "0 one" "and work in one"
unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID

# ---- again ----
inode=$(stat -c %i $to/large)
touch $to/theirs job/results/more
printf 'changed' >job/results/one
run --verbose "results:$to%"
is "$status $(cat $to/one) $(stat -c %i $to/large)" "0 changed $inode" "again, only what has changed is copied"
ok "$([ -e $to/theirs ] && [ -e $to/more ]; echo $?)" "what else is at the destination stays"
like "$err" "2 files, 7 B" "and it says how much it was"

# ---- what cannot be copied ----
run nothing:out/nothing results/one:out/after
is "$status $(cat out/after)" "66 changed" "a source that is not there ends with 66, and the next one is copied"
like "$err" "job/nothing is not there: nothing is copied to $work/out/nothing" "but it is said"
mkfifo job/results/pipe
touch job/results/secret
mkdir -m 0 job/results/closed
chmod 0 job/results/secret
run results:out/some
is "$status" 66 "what cannot be read ends with 66"
like "$err" "not copied out: results/secret cannot be read: Permission denied" "and is named"
like "$err" "not copied out: results/closed cannot be read" "folders too"
like "$err" "results/pipe is not a file, folder or link, and is left out" "a pipe is left out"
is "$(cat out/some/one)" changed "the rest is there, at its name"
chmod 700 job/results/secret job/results/closed
rm -r job/results/{secret,closed,pipe}
mkdir out/full
run results/one:out/full
is "$status" 74 "a file upon a folder is refused"
like "$err" "out/full is a folder and results/one a file: write $work/out/full/" "and what to write instead"
touch out/file
run results:out/file
is "$status" 74 "a folder upon a file too"
run results:out/file/below/it
like "$err" "out/file/below cannot be opened: Not a directory" "a destination that cannot be made is named"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=3m none out/full 2>/dev/null; then
    at_exit "umount '$work/out/full' 2>/dev/null"
    run results:out/full/copy
    is "$status" 74 "a full disk ends with 74"
    like "$err" "the copy cannot be written: No space left on device" "and says so"
    is "$(ls -A out/full)" copy.partial "what could be copied is kept under a name that says so"
    ok "$([ ! -e out/full/copy.partial/large ]; echo $?)" "without half files"
    umount out/full
else
    skip "a full disk" "cannot mount"
fi

# ---- being ended ----
# Stopped at once, so that the signal finds it in the midst of its work.
mkdir job/many
(cd job/many && seq 5000 | xargs touch)
ended() { # NAME OPTION...
    local pid
    rm -rf out/many*
    "$stage" --out "${@:2}" many:out/many results:out/late 2>errors &
    pid=$!
    for ((i = 0; i < 500; i++)); do [ -e out/.hpc-train-out.42.3.7.0.$pid ] && break; sleep 0.01; done
    kill -STOP $pid
    kill -TERM $pid
    kill -CONT $pid
    wait $pid
    status=$?
    err=$(cat errors)
}
ended "a signal"
is "$status" 75 "a signal ends it with 75"
like "$err" "many to .*out/many: ended by signal 15.*results to .*out/late: ended by signal 15" "each entry that was not copied is named"
is "$(ls -A out | grep -c '^many$\|late\|hpc-train-out')" 0 "nothing is at its name, or under one of ours"
ended "grace" --grace 60
is "$status $(ls out/many | wc -l)" "0 5000" "with a grace it goes on"
like "$err" "the job is being ended: 60.0 s are left to copy" "and says so"
rm -rf out/many out/late
run --seconds 0.001 many:out/many results:out/late
is "$status" 75 "the end of its time ends it too"
like "$err" "many to .*out/many: the time of 0 s was over.*results to .*out/late: the time" "with the reason"
rm -r job/many
echo x >job/small

# ---- records ----
record() { printf 'job=%s\0' 42 | cat - <(printf 'step=0\0node=1\0umask=18\0cwd=%s\0list=%s\0task=4\0task=6\0end=\0' "$work" "$1") >job/.hpc-train/out.0; }
echo 4 >job/r.4
echo 6 >job/r.6
record 'r.%t:out/%n.r.%t,small:out/small'
run --record out.0
is "$status $(cat out/1.r.4 out/1.r.6 | xargs) $(cat out/small)" "0 4 6 x" "a record is carried out"
ok "$([ ! -e job/.hpc-train/out.0 ]; echo $?)" "and removed"
record 'small:out/file/x,r.4:out/r'
run --record out.0
is "$status $(cat out/r)" "74 4" "what fails does not keep the next entry"
ok "$([ -e job/.hpc-train/out.0 ]; echo $?)" "and keeps the record"
rm out/file
run --all
is "$status $(cat out/file/x)" "0 x" "for the last try"
is "$(ls -A job/.hpc-train; ls hpc-train-lost* 2>/dev/null)" copied "after which nothing is left to say"
ln -s job/results inner
record 'small:inner/x'
run --record out.0
like "$status $err" "^64 .*small to $work/inner/x: that is in the job directory, which is removed" "a destination that leads into the job directory is an error"
ok "$([ ! -e job/results/x ]; echo $?)" "nothing is copied there"
rm inner job/.hpc-train/out.0
touch out/file2
record 'small:out/file2/x'
run --all
is "$status" 74 "a last try that fails"
like "$(cat hpc-train-lost.42.0.1)" "not copied out of job 42, step 0, node 1.*small to $work/out/file2/x: .*Not a directory" "leaves a file that says what is lost"
printf 'nonsense\0' >job/.hpc-train/out.0
run --all
is "$status" 65 "a broken record is told"
rm -r job/.hpc-train
run --all
is "$status" 0 "without records there is nothing to do"

# ---- what is at the destination ----
mkdir job/old && echo aaaa >job/old/f && touch -d 2001-01-01 job/old/f
run old:out/old
echo bbbb >job/old/f && touch -d 2001-01-01 job/old/f
run old:out/old
is "$status $(cat out/old/f)" "0 bbbb" "of two runs with files of one size and time the second's are copied"
mkdir store && echo earlier >store/real && printf one >job/results/one
ln -s store/real linked && ln -s store/new dangling && ln -s loop loop
run results/one:linked results/one:dangling
is "$status $(readlink linked) $(readlink dangling) $(cat store/real store/new)" "0 store/real store/new oneone" "links are followed"
run results/one:loop
is "$status $(readlink loop)" "74 loop" "one that leads nowhere is an error"
mkfifo pipe
run results/one:pipe
is "$status $(stat -c %F pipe)" "74 fifo" "a pipe stays one"
like "$err" "pipe is a device, a pipe or a socket" "which is told"
run old:job/old/below
is "$status $(find job/old/below -type f -printf '%P ')" "64 f " "what is copied is not copied into itself"
like "$err" "is where this is copied to: give a destination outside" "which is told"
rm -r job/old

# ---- words that are refused ----
refused() { # LIST MESSAGE
    run --list "$1"
    like "$status $err" "^64 .*$2" "'$1' is refused"
}
refused results "has no destination"
refused :x "has no source"
refused ../x:y "must be a path below"
refused /tmp/x:y "must be a path below"
refused .hpc-train/out.0:y "must be a path below"
refused a:/x/.. "has no name"
refused a:%q "stands for nothing"
refused a:x% "stands for nothing"
refused a:%t "must be on both sides"
refused a.%t:b "must be on both sides"
refused a:x,b:x "would both be copied"
run --from job
like "$status $err" "^64 .*at least one SRC:DST" "nothing to do is refused"

done_testing
