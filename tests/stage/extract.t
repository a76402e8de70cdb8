#!/bin/bash
# extract.t: hpc-train-stage --mode extract: what is unpacked from tar and zip, and what an archive cannot do.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
stage=${top_builddir:?run by make check}/hpc-train-stage
work=$(folder_in_memory hpc-train-extract)
at_exit "chmod -R u+rwx '$work' 2>/dev/null; rm -rf '$work'"
cd "$work" || exit

fresh() { chmod -R u+rwx to 2>/dev/null; rm -rf to; mkdir to; }
# What took long, on a busy machine, ends with a line that does not matter here.
run() { capture limit 60 "$@"; err=$(grep -vE ' files?, .* in [0-9.]+ s' <<<"$err"); }
unpack() { run "$stage" --mode extract --to to "$@"; }

mkdir -p 'src/sub dir/empty' src/locked src/many
printf 'one' >src/one
printf 'odd' >$'src/sub dir/new\nline \xff"'
head -c 3000000 /dev/urandom >src/large
: >src/nothing
for i in {1..300}; do echo "file $i" >"src/many/$i"; done
ln -s ../one 'src/sub dir/up'
ln -s missing src/dangling
ln src/one src/uno
truncate -s 40M src/hole
printf x | dd of=src/hole bs=1 seek=20000000 conv=notrunc status=none
printf 'x' >src/locked/file
chmod 640 src/one
touch -d '2001-02-03 04:05:06' src/large 'src/sub dir/empty'
chmod 555 src/locked
listing() { (cd "$1" && find . -printf '%P|%y|%m|%s|%Ts|%l|%n\n' | sed 's/^\([^|]*|d|[0-9]*|\)[0-9]*/\1/; s/|[0-9]*$//' | LC_ALL=C sort); }

tar --sparse -C src -cf plain.tar .
gzip -k -1 <plain.tar >a.tar.gz
archives=(plain.tar a.tar.gz)
if command -v zstd >/dev/null; then zstd -q plain.tar -o a.tar.zst && archives+=(a.tar.zst); fi
if command -v xz >/dev/null; then xz -1 -k -c plain.tar >a.tar.xz && archives+=(a.tar.xz); fi
if command -v bzip2 >/dev/null; then bzip2 -1 -k -c plain.tar >a.tar.bz2 && archives+=(a.tar.bz2); fi
for archive in "${archives[@]}"; do
    fresh
    unpack "$archive:x"
    is "$status$err" 0 "$archive is unpacked"
    ok "$(cmp <(listing to/x) <(listing src); echo $?)" "$archive: names, kinds, modes, sizes, times and links are kept"
    ok "$(diff -r --no-dereference src to/x >/dev/null; echo $?)" "$archive: content is kept"
done
is "$(stat -c %h to/x/one)" 2 "hard links stay hard links"
ok "$([ "$(du -k to/x/hole | cut -f 1)" -lt 1000 ]; echo $?)" "holes stay holes"
unpack "$archive:x"
like "$err" "$archive is at to/x already, unchanged" "a second time it is reused"
echo more >>to/x/many/7
run "$stage" --verbose --mode extract --to to "$archive:x"
like "$err" "staged again: many/7 was changed" "unless a file of it has changed"
run "$stage" --to to "$archive:x"
is "$status" 0 "the archive itself takes its place in copy mode"
ok "$(cmp "$archive" to/x; echo $?)" "as it is"
unpack src:folder
is "$status $(cat to/folder/one)" "0 one" "a folder is copied in extract mode"

if python3 -c '' 2>/dev/null; then
    fresh
    python3 - <<'END'
import zipfile
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for i in range(300):
        z.writestr("many/%d" % i, "file %d\n" % i)
    z.write("src/large", "large")
    link = zipfile.ZipInfo("link")
    link.create_system = 3
    link.external_attr = 0o120777 << 16
    z.writestr(link, "many/7")
END
    unpack a.zip:x
    is "$status$err" 0 "a zip is unpacked"
    is "$(cat to/x/many/299 to/x/link) $(ls to/x/many | wc -l) $(readlink to/x/link)" $'file 299\nfile 7 300 many/7' "a zip: files and links"
    ok "$(cmp src/large to/x/large; echo $?)" "a zip: content"
    size=$(stat -c %s a.zip)
    head -c $((size - 30)) a.zip >cut.zip
    unpack cut.zip:y
    is "$status" 65 "a zip without its end is refused"
else
    skip "zip" "no python3 to make one"
fi

# ---- several archives in one ----
mkdir -p second/many
echo other >second/many/other
echo two >second/one
tar -C second -cf second.tar .
cat plain.tar second.tar >joined.tar
{ gzip -c plain.tar; gzip -c second.tar; } >joined.tar.gz
for archive in joined.tar joined.tar.gz; do
    fresh
    unpack $archive:x
    is "$status$err" 0 "$archive: archives joined by cat are unpacked"
    is "$(cat to/x/many/300 to/x/many/other to/x/one)" $'file 300\nother\ntwo' "$archive: all members, of which the last of each name counts"
done

# ---- bits that give rights ----
mkdir -p bits/sticky bits/group
printf 'small' >bits/user
chmod 6755 bits/user
chmod 1777 bits/sticky
chmod 2775 bits/group
tar -C bits -cf bits.tar .
python3 -c 'import shutil; shutil.make_archive("bits", "zip", "bits")' 2>/dev/null || cp bits.tar bits.zip
for archive in bits.tar bits.zip; do
    fresh
    unpack $archive:x
    is "$status $(cd to/x && stat -c '%a %n' ./* | xargs)" "0 775 ./group 777 ./sticky 755 ./user" "$archive: set-user-ID, set-group-ID and sticky bits are not kept"
done

# ---- damage ----
fresh
damaged() { # NAME MESSAGE ARCHIVE
    unpack "$3:x"
    is "$status" 65 "$1: status 65"
    like "$err" "$3: .*$2" "$1: the error says why"
    is "$(ls to; ls to/.hpc-train/staged)" "" "$1: nothing is left"
}
size=$(stat -c %s a.tar.gz)
head -c $((size / 2)) a.tar.gz >half.tar.gz
damaged "half a tar.gz" "its end is missing" half.tar.gz
head -c $((size - 5)) a.tar.gz >sum.tar.gz
damaged "a tar.gz without its sum" "its end is missing" sum.tar.gz
{ cat a.tar.gz; echo more; } >more.tar.gz
damaged "a tar.gz with something behind it" "something behind" more.tar.gz
cp a.tar.gz bad.tar.gz && printf '\x55\xaa\x55' | dd of=bad.tar.gz bs=1 seek=$((size / 2)) conv=notrunc status=none
damaged "a tar.gz with wrong bytes" "damaged" bad.tar.gz
tar -cf two.tar -C src many one
tar -tRf two.tar | sed -n 's/^block \([0-9]*\): many\/30$/\1/p' >block
head -c $(($(cat block) * 512)) two.tar >cut.tar
damaged "a tar that ends between two files" "its end is missing" cut.tar
head -c $(($(cat block) * 512 + 700)) two.tar >cut2.tar
damaged "a tar that ends within a file" "[Tt]runcated" cut2.tar
cp src/large no-archive
damaged "what is not an archive" "not an archive" no-archive
: >empty
damaged "an empty file" "." empty
echo "not an archive" | gzip >text.gz
damaged "a compressed text" "not an archive" text.gz
fresh
cat a.tar.gz >two-members.tar.gz && { head -c 1000000 plain.tar | gzip -1; tail -c +1000001 plain.tar | gzip -1; head -c 512 /dev/zero; } >two-members.tar.gz
unpack two-members.tar.gz:x
is "$status $(cmp <(listing to/x) <(listing src) 2>&1)" "0 " "gzip members one behind the other, padded with zeros, are one"

# ---- hostile ones ----
if python3 -c '' 2>/dev/null; then
    python3 - <<'END'
import io, tarfile
def make(name, *members):
    with tarfile.open(name, "w") as t:
        for m in members:
            i = tarfile.TarInfo(m[0]); i.type = m[1]
            if len(m) > 2 and isinstance(m[2], str): i.linkname = m[2]
            data = m[2] if len(m) > 2 and isinstance(m[2], bytes) else b""
            i.size = len(data)
            t.addfile(i, io.BytesIO(data))
F, D, S, H = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
make("up.tar", ("../escaped", F, b"x"))
make("deep.tar", ("a/b/../../../escaped", F, b"x"))
make("absolute.tar", ("/tmp/hpc-train-escaped", F, b"x"))
make("link-out.tar", ("l", S, "../.."), ("l/escaped", F, b"x"))
make("link-abs.tar", ("l", S, "/tmp"), ("l/hpc-train-escaped", F, b"x"))
make("through.tar", ("d", D), ("l", S, "d"), ("l/x", F, b"x"))
make("hard-out.tar", ("h", H, "../../../etc/passwd"))
make("hard-abs.tar", ("h", H, "/etc/passwd"))
make("hard-missing.tar", ("h", H, "nothing"))
make("device.tar", ("null", tarfile.CHRTYPE))
make("pipe.tar", ("pipe", tarfile.FIFOTYPE))
make("under-file.tar", ("f", F, b"x"), ("f/x", F, b"x"))
make("over-folder.tar", ("d/x", F, b"x"), ("d", F, b"x"))
make("twice.tar", ("f", F, b"old"), ("l", S, "f"), ("f", F, b"new"), ("l", F, b"file"))
bomb = tarfile.TarInfo("zeros"); bomb.size = 300_000_000
with tarfile.open("bomb.tar.gz", "w:gz", compresslevel=1) as t:
    class Zeros:
        def read(self, n): return bytes(n)
    t.addfile(bomb, Zeros())
END
    hostile() { # NAME MESSAGE ARCHIVE
        fresh
        unpack "$3:x"
        is "$status" 65 "$1: status 65"
        like "$err" "$3.*$2" "$1: the error says why"
        is "$(ls to; find . -name '*escaped*'; ls /tmp/hpc-train-escaped 2>/dev/null)" "" "$1: nothing is made"
    }
    hostile "a name that leads up" "leads out of the folder" up.tar
    hostile "a name that leads up from within" "leads out of the folder" deep.tar
    hostile "an absolute name" "absolute name" absolute.tar
    hostile "a link out" "is a link to '../..', out of the folder" link-out.tar
    hostile "an absolute link" "is a link to '/tmp', out of the folder" link-abs.tar
    hostile "a file through a link" "lies in what is not a folder" through.tar
    hostile "a hard link out" "leads out of the folder" hard-out.tar
    hostile "an absolute hard link" "absolute name" hard-abs.tar
    hostile "a hard link to nothing" "which is not there" hard-missing.tar
    hostile "a device" "neither a file" device.tar
    hostile "a pipe" "neither a file" pipe.tar
    hostile "a file below a file" "lies in what is not a folder" under-file.tar
    hostile "a file in place of a folder" "(comes twice|lies in what is not a folder)" over-folder.tar
    fresh
    unpack twice.tar:x
    is "$status $(cat to/x/f to/x/l)" "0 newfile" "the later of two with one name counts"
    unpack twice.tar:x
    like "$err" "already, unchanged" "and is recognized later"
    fresh
    run "$stage" --mode extract --max 10M --to to bomb.tar.gz:x
    is "$status" 78 "a bomb: status 78"
    like "$err" "bomb.tar.gz has more content than the 10485760 bytes" "a bomb: says so"
    is "$(ls to)" "" "a bomb: nothing is left"
    if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64m tmpfs small 2>/dev/null; then
        at_exit "umount '$work/small'"
        run "$stage" --mode extract --to small bomb.tar.gz:x
        is "$status" 78 "a bomb larger than the disk: status 78"
        is "$(ls small)" "" "a bomb larger than the disk: nothing is left"
        umount small
        mount -t tmpfs -o size=64m,nr_inodes=100 tmpfs small
        run "$stage" --mode extract --to small a.tar.gz:x
        is "$status" 78 "more files than the disk takes: status 78"
        like "$err" "a.tar.gz has more than [0-9]* files, for which there is no room" "and says so"
    else
        skip "bombs on a small disk" "no mount here"
    fi
else
    skip "hostile archives" "no python3 to make them"
fi
run "$stage" --mode unpack --to to plain.tar
is "$status" 64 "a wrong --mode"

done_testing
