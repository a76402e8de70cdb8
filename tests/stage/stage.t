#!/bin/bash
# stage.t: hpc-train-stage as a command, without a cluster: what it copies, refuses, reuses and leaves behind.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=${top_builddir:?run by make check}/hpc-train-stage
work=$(mktemp -d /tmp/hpc-train-stage.XXXXXX)
at_exit "chmod -R u+rwx '$work' 2>/dev/null; rm -rf '$work'"
cd "$work" || exit

fresh() { chmod -R u+rwx to 2>/dev/null; rm -rf to; mkdir to; }
# What took long, on a busy machine, ends with a line that does not matter here.
run() { capture limit 60 "$@"; said=$err err=$(grep -vE ' files?, .* in [0-9.]+ s' <<<"$err"); }

# A tree as a user may have it.
mkdir -p 'src/sub dir/empty' src/locked
printf 'one' >src/one
printf 'odd' >$'src/sub dir/new\nline \xff"'
head -c 20000000 /dev/urandom >src/large
: >src/nothing
ln -s one src/link
ln -s ../one 'src/sub dir/up'
ln -s missing src/dangling
printf 'x' >src/locked/file
chmod 640 src/one
chmod 755 src/large
touch -d '2001-02-03 04:05:06.789' src/one 'src/sub dir/empty'
chmod 555 src/locked

# ---- what is copied ----
fresh
run "$stage" --to to src one=1 2>/dev/null
is "$status" 66 "a missing source ends with 66"
like "$err" "one=1 cannot be read: No such file" "the error names the file"
ok "$([ ! -e to/src ]; echo $?)" "nothing is copied"

run "$stage" --to to src src/one:deep/er/uno
is "$status" 0 "a folder and a file are copied"
is "$err" "" "without a word"
like "$said" "^hpc-train-stage: [^ ]*: 9 files, 20 MB, to to in [0-9]+\.[0-9] s( \([0-9.]+ .B/s\))?$" "one line reports what was copied"
listing() { (cd "$1" && find . -printf '%P|%y|%m|%s|%T@|%l\n' | LC_ALL=C grep -av '^[^|]*|d|' | LC_ALL=C sort; find . -type d -printf '%P|%m|%T@\n' | LC_ALL=C sort); }
is "$(listing to/src)" "$(listing src)" "names, kinds, modes, sizes, times and links are kept"
ok "$(diff -r --no-dereference src to/src >/dev/null; echo $?)" "content is kept"
is "$(cat to/deep/er/uno)" one "a destination of its own is made with its folders"
is "$(ls to/.hpc-train)" "lock
staged" "nothing but the lock is left of the work"

# ---- again ----
inode=$(stat -c %i to/src/large)
run "$stage" --verbose --to to src
like "$err" "src is at to/src already, unchanged" "an unchanged copy is reused"
run "$stage" --to to src src/one:deep/er/uno
unlike "$said" "files" "and nothing is reported as copied"
run "$stage" --quiet --to to src src/one:again
is "$status$said$(cat to/again)" 0one "--quiet: nothing is reported"
rm to/again
is "$(stat -c %i to/src/large)" "$inode" "and is not modified"
printf 'two' >src/one
run "$stage" --verbose --to to src
is "$status $(cat to/src/one)" "0 two" "a changed source is copied again"
touch -d 2002-01-01 src/nothing
run "$stage" --to to src
is "$(stat -c %Y to/src/nothing)" "$(stat -c %Y src/nothing)" "also if only the mtime changed"
rm to/src/nothing
run "$stage" --to to src
ok "$([ -e to/src/nothing ]; echo $?)" "or an entry of the copy is missing"
touch to/src/extra
run "$stage" --to to src
ok "$([ ! -e to/src/extra ]; echo $?)" "or it has one too many"
run "$stage" --to to src/one:src
is "$(cat to/src)" two "a file may take the place of a folder"
run "$stage" --to to src
is "$(cat to/src/one)" two "a file replaces a folder"

# A file that was written to since is read again, even if size and time are as before.
time=$(stat -c %y src/large)
printf X | dd of=to/src/large bs=1 seek=10000000 conv=notrunc status=none
touch -d "$time" to/src/large
run "$stage" --verbose --to to src
like "$err" "staged again: large was changed in the copy" "content that changed under the same size and time is found"
ok "$(cmp src/large to/src/large >/dev/null; echo $?)" "and is staged again"
touch to/src/large && touch -d "$time" to/src/large
inode=$(stat -c %i to/src/large)
run "$stage" --to to src
is "$(stat -c %i to/src/large)" "$inode" "a file that was touched, but holds what it held, is reused"
like "$err" "src is at to/src already, unchanged" "and the reuse is reported"
for list in to/.hpc-train/staged/*; do printf X | dd of="$list" bs=1 seek=100 conv=notrunc status=none; done
run "$stage" --verbose --to to src
like "$err" "the list of what was staged is damaged" "a damaged list is found"
is "$status $(diff -r --no-dereference src to/src)" "0 " "all of it is staged again"

# ---- holes, further names ----
fresh
mkdir shape
truncate -s 300M shape/hole
printf x | dd of=shape/hole bs=1 seek=150000000 conv=notrunc status=none
truncate -s 1T shape/terabyte
head -c 5000000 /dev/urandom >shape/first
ln shape/first shape/second
mkdir shape/sub && ln shape/first shape/sub/third && ln -s ../second shape/sub/link
start=$SECONDS
run "$stage" --to to shape
is "$status$err" 0 "holes and hard links are copied"
ok "$([ "$(du -k to/shape | tail -n 1 | cut -f 1)" -lt 8000 ]; echo $?)" "holes stay holes"
ok "$([ $((SECONDS - start)) -lt 20 ]; echo $?)" "a terabyte of holes takes no time"
is "$(stat -c %s to/shape/terabyte)" 1099511627776 "and has its size"
ok "$(cmp shape/hole to/shape/hole; echo $?)" "data between holes is kept"
is "$(stat -c '%i %h' to/shape/first to/shape/second to/shape/sub/third | sort -u | wc -l)" 1 "three names of one file stay one file"
run "$stage" --to to shape
like "$err" "already, unchanged" "and is recognized as unchanged later"
rm -r shape/terabyte

# ---- bits that give rights ----
fresh
bits() { find "$1" -perm /7000; }
mkdir -p bits/sticky bits/group
printf 'small' >bits/user
head -c 20000000 /dev/zero >bits/large
chmod 4755 bits/user
chmod 6751 bits/large
chmod 1777 bits/sticky
chmod 2775 bits/group
run "$stage" --to to bits
is "$status $(bits to)" "0 " "set-user-ID, set-group-ID and sticky bits of files and folders are not kept"
is "$(stat -c '%a %n' to/bits/* | xargs)" "775 to/bits/group 751 to/bits/large 777 to/bits/sticky 755 to/bits/user" "the other bits are"
inode=$(stat -c %i to/bits/large)
chmod 751 bits/large
run "$stage" --to to bits
is "$status $(stat -c %i to/bits/large) $(bits to)" "0 $inode " "set-ID bits make no difference when staged again"
rm -r bits

# ---- links out, followed ----
fresh
mkdir -p far/deep && echo far >far/deep/file && mkdir links && ln -s ../far links/away && ln -s ../src/one links/one
ln -s away/deep/file links/inside
run "$stage" --links follow --to to links
is "$status $(cat to/links/away/deep/file to/links/one to/links/inside | tr '\n' ' ')" "0 far twofar " "--links follow: what links out lead to is copied"
is "$(readlink to/links/inside)" away/deep/file "links within are kept"
run "$stage" --links follow --allow "$work/links" --to to links:l2
is "$status" 78 "nothing outside --allow is reached through a link"
run "$stage" --links sometimes --to to links
is "$status" 64 "a wrong --links"

# ---- what is refused ----
fresh
refused() { # STATUS MESSAGE NAME ARGUMENT...
    run "$stage" --to to "${@:4}"
    is "$status" "$1" "$3: status $1"
    like "$err" "$2" "$3: the error says why"
    is "$(cd to && find . -not -path './.hpc-train*' | LC_ALL=C sort)" . "$3: nothing is copied"
}
mkdir bad1 bad2 bad3 bad4
ln -s ../src/one bad1/out
ln -s /etc/passwd bad2/abs
mkdir -p bad3/sub
ln -s sub/../../src bad3/sneaky
mkfifo bad4/pipe
mkdir -p bad5/a
ln -s .. bad5/a/top
ln -s top/.. bad5/a/above
refused 65 "bad1/out is a link to '../src/one', out of the folder" "a link out of the tree" bad1
refused 65 "bad2/abs is a link to '/etc/passwd'" "an absolute link" bad2
refused 65 "bad3/sneaky is a link" "a link that climbs behind a name" bad3
refused 65 "bad5/a/above is a link" "a link that climbs behind another link" bad5
refused 65 "bad4/pipe is neither a file nor a folder" "a pipe" bad4
refused 64 "below .SLURM_TMPDIR" "a destination above" src:../x
refused 64 "both be put at" "two sources for one place" src bad1:src
refused 78 "at most 10 MB may be" "more than --max" --max 10000000 src
refused 78 "does not lie in a folder that may be staged" "a source outside --allow" --allow "$work/src" bad1
refused 64 "is not a size" "a wrong --max" --max lots src
ln -s src allowed-looking
refused 78 "does not lie in a folder" "a link to outside --allow" --allow "$work/bad1" allowed-looking
run "$stage" --allow "$work/bad1" --allow "$work/src" --to to src/one
is "$status" 0 "a source below --allow is copied"
if [ "$(id -u)" != 0 ]; then
    chmod 000 src/one
    refused 66 "src/one cannot be read" "an unreadable file" src
    chmod 644 src/one
else
    mkdir -m 755 theirs && cp "$stage" theirs/stage && chmod 755 "$work" theirs && mkdir -m 777 theirs/to
    mkdir theirs/src && echo x >theirs/src/file && chmod 600 theirs/src/file
    cat >theirs/run <<END
cd '$work/theirs' && exec setpriv --reuid=12345 --regid=12345 --clear-groups ./stage --to to src
END
    cp "$(dirname "$stage")/.libs/hpc-train-stage" theirs/stage 2>/dev/null
    run bash theirs/run
    is "$status" 66 "an unreadable file: status 66"
    like "$err" "src/file cannot be read: Permission denied" "an unreadable file: the error says so"
fi
run "$stage" --to nowhere src
is "$status" 74 "a missing --to ends with 74"
run "$stage" src
is "$status" 64 "no --to ends with 64"
run "$stage" --to to
is "$status" 64 "no source ends with 64"
run "$stage" --help
like "$out" "usage: hpc-train-stage" "--help"
missing=
while read -r option; do
    grep -q -e "${option//-/\\\\-}" "$top_srcdir/doc/man/hpc-train-stage.1" || missing+=" $option"
done < <(grep -o -e '--[a-z-]*' <<<"$out" | sort -u)
is "$missing" "" "the man page has every option of --help"
run "$stage" --nonsense
is "$status" 64 "an unknown option ends with 64"
like "$err" "^hpc-train-stage: unknown option '--nonsense'; see hpc-train-stage --help$" "the error is one line"
for words in '--too dir:--to' '--memroy 3G:--memory' '--out --recrod x:--record' '--out --gracee 3:--grace'; do
    # shellcheck disable=SC2086 # several words
    run "$stage" ${words%:*}
    like "$status $err" "^64 .*did you mean ${words#*:}\\?" "${words%:*}: what was meant"
done
run "$stage" --to
like "$status $err" "^64 hpc-train-stage: --to needs a value" "a value that is missing"
run "$stage" --quiet=1
like "$status $err" "^64 hpc-train-stage: --quiet takes no value" "a value that is one too many"
for option in --index --port --wait --progress-fd --max --memory '--out --seconds' '--out --grace' '--out --progress-fd'; do
    bad='' out_first=()
    [ "$option" = "${option% *}" ] || out_first=(--out)
    for value in '' ' 5' 5x nan inf -1 1e999 0x10 99999999999999999999999; do
        run "$stage" "${out_first[@]}" "${option##* }=$value"
        [[ $status = 64 && $err =~ ${option##* }:\ .*(between|seconds\ from|not\ a\ size) ]] || bad+=" '$value': $status $err"
    done
    is "$bad" "" "$option: not a number, or out of range: an error"
done

# ---- a full disk ----
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64m tmpfs small 2>/dev/null; then
    at_exit "umount '$work/small'"
    head -c 70000000 /dev/zero >too-large
    run "$stage" --to small too-large
    is "$status" 74 "too small a disk is found out before copying: status 74"
    like "$err" "small needs 70 MB, but only .* are free" "the error has the required and the free size"
    is "$(ls small)" "" "nothing is left"
    run "$stage" --to small too-large:x src:y
    is "$(ls small)" "" "nor of the other entries"
    run "$stage" --memory 10M --to small src:own
    is "$status" 74 "a folder in memory beyond the job's memory limit: status 74"
    like "$err" "small needs 20 MB and lies in memory, of which the job has only 10 MB" "the error has both sizes"
    run "$stage" --memory 40M --to small src:own
    is "$status" 0 "within the memory it is copied"
    chmod -R u+rwx small/own && rm -rf small/own small/.hpc-train
    # Two at once, each of which fits: the room ends while they copy.
    head -c 45000000 /dev/zero >fits
    mkdir small/a small/b
    seen=0 wrong=
    for ((i = 0; i < 30 && !seen; i++)); do
        for to in a b; do { "$stage" --to small/$to fits 2>small.$to; echo $? >small.$to.status; } & done
        wait
        for to in a b; do
            left=$(ls small/$to; ls small/$to/.hpc-train)
            case $(cat small.$to.status) in
            0) [ "$left" = $'fits\nlock\nstaged' ] || wrong="a copy: $left" ;;
            74) if grep -q "fits: the copy cannot be written: No space left" small.$to; then seen=1; fi
                [ "$left" = $'lock\nstaged' ] || wrong="no copy: $left" ;;
            *) wrong="status $(cat small.$to.status): $(cat small.$to)" ;;
            esac
            rm -f small/$to/fits
        done
    done
    is "$seen" 1 "a disk that fills up while copying: status 74 and the file's name"
    is "$wrong" "" "nothing is left"
else
    skip "full disk" "no mount here"
fi

# ---- sharing blocks ----
if [ "$(id -u)" = 0 ] && [ -x /sbin/mkfs.xfs ] && truncate -s 400M image && mkfs.xfs -q image && mkdir xfs &&
    mount -o loop image xfs 2>/dev/null; then
    at_exit "umount '$work/xfs'"
    mkdir xfs/src xfs/to
    head -c 60M /dev/urandom >xfs/src/large
    echo small >xfs/src/small
    sync -f xfs/src/large
    before=$(df --output=used -k xfs | tail -n 1)
    run "$stage" --mode copy --to xfs/to xfs/src
    sync -f xfs/to/src/large
    used=$(($(df --output=used -k xfs | tail -n 1) - before))
    is "$status $(diff -r xfs/src xfs/to/src)" "0 " "a file system that shares blocks: the copy is whole"
    ok "$([ $used -lt 20000 ]; echo $?)" "without using space: $used KiB of 60 MiB"
else
    skip "shared blocks" "no XFS can be made here"
fi

# ---- changed on the way; what is said meanwhile ----
fresh
head -c 1500000000 /dev/zero >very-large
"$stage" --to to very-large:big 2>errors &
pid=$!
for ((i = 0; i < 100; i++)); do [ -e to/.hpc-train/incoming/0 ] && break; sleep 0.02; done
for ((i = 0; i < 15; i++)); do # while it copies its first blocks
    threads=$(find /proc/$pid/task -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
    [ "$threads" -gt 1 ] && break
    sleep 0.02
done
kill -STOP $pid
shared=$(sed -n 's/^nonvoluntary_ctxt_switches:[[:space:]]*//p' /proc/$pid/status) # how often others took its core
if [ "$threads" -gt 1 ] || [ "$shared" -lt 3 ]; then
    ok "$([ "$threads" -gt 1 ] || [ "$(nproc)" = 1 ]; echo $?)" "parts of one file are copied at once ($threads threads)"
else
    skip "parts of one file are copied at once" "others took its core $shared times: more threads would only be in their way"
fi
sleep 5.2
kill -CONT $pid
wait $pid
is $? 0 "a long copy"
like "$(cat errors)" "hpc-train-stage: [^ ]*: [0-9.]+ [a-zA-Z]+ of 1.5 GB, 0 of 1 files, [0-9.]+ [a-zA-Z]+/s, [0-9]+:[0-9:]+ left" \
    "says how far it is: bytes, files, rate, time left"
like "$(cat errors)" "1 file, 1.5 GB, to to in [0-9.]+ s \([0-9.]+ .B/s\)" "a summary at the end"
"$stage" --to to very-large:two 2>errors &
pid=$!
for ((i = 0; i < 100; i++)); do [ -e to/.hpc-train/incoming/0 ] && break; sleep 0.02; done
echo more >>very-large
wait $pid
is "$? $(ls to)" "74 big" "a source that changes while it is copied: status 74, and no copy"
like "$(cat errors)" "very-large changed while it was copied" "the error names the file"

# ---- ended on the way ----
fresh
"$stage" --to to very-large:big 2>errors &
pid=$!
for ((i = 0; i < 100; i++)); do [ -e to/.hpc-train/incoming/0 ] && break; sleep 0.02; done
ok "$([ -e to/.hpc-train/incoming/0 ]; echo $?)" "a long copy has begun"
touched=$(stat -c %y to/.hpc-train/lock)
kill -STOP $pid # however fast it copies, a second goes by meanwhile
sleep 1.2
kill -CONT $pid
for ((i = 0; i < 300; i++)); do [ "$(stat -c %y to/.hpc-train/lock)" = "$touched" ] || break; sleep 0.01; done
kill -STOP $pid
ok "$([ $i -lt 300 ] && [ -e to/.hpc-train/incoming/0 ]; echo $?)" "the lock's mtime shows progress to waiting steps"
start=${EPOCHREALTIME/./}
kill -TERM $pid
kill -CONT $pid
wait $pid
is $? 75 "SIGTERM ends it with 75"
took=$(((${EPOCHREALTIME/./} - start) / 1000))
ok "$([ $took -lt 1000 ]; echo $?)" "within a second ($took ms)"
is "$(ls to; ls to/.hpc-train)" $'lock\nstaged' "nothing is left"
like "$(cat errors)" "ended by signal 15" "the message names the signal"
"$stage" --to to very-large:big 2>errors &
pid=$!
for ((i = 0; i < 100; i++)); do [ -e to/.hpc-train/incoming/0 ] && break; sleep 0.02; done
kill -KILL $pid
wait $pid 2>/dev/null
is "$(ls to)" "" "after SIGKILL there is no copy under its final name"
run "$stage" --to to src
is "$status $(ls to/.hpc-train)" $'0 lock\nstaged' "the next run removes the rest"

# ---- two at once ----
fresh
pids=()
for i in 1 2 3 4; do
    "$stage" --to to src 2>/dev/null &
    pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
is "$failed" 0 "four at once do not fight"
ok "$(diff -r --no-dereference src to/src >/dev/null; echo $?)" "one complete copy results"

done_testing
