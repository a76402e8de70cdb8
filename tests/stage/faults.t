#!/bin/bash
# faults.t: one thing goes wrong in each of many runs: each is reported or harmless, none silent. `make check-long` makes
# 10,000 of them, over all kinds of archives; `make check` some hundred.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
: "${top_builddir:?run by make check}"
faults=$top_builddir/tests/stage/faults
stage=$top_builddir/hpc-train-stage
module=$top_builddir/tests/stage/.libs/fault.so
work=$(mktemp -d /tmp/hpc-train-faults.XXXXXX)
at_exit "rm -rf '$work'"
seed=${HPC_TRAIN_SEED:-$RANDOM}
echo "# seed $seed (HPC_TRAIN_SEED=$seed repeats it)"

"$faults" --tree "$work" || exit
tar -C "$work/tree" -czf "$work/t.tar.gz" .
modes=(copy t.tar.gz)
tries=100 full=20
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    tries=10000 full=100
    tar -C "$work/tree" -cf "$work/t.tar" . && modes+=(t.tar)
    if command -v zstd >/dev/null; then zstd -q "$work/t.tar" -o "$work/t.tar.zst" && modes+=(t.tar.zst); fi
    if command -v xz >/dev/null; then xz -1 -k "$work/t.tar" && modes+=(t.tar.xz); fi
    if command -v python3 >/dev/null; then
        (cd "$work/tree" && python3 - <<'END') && modes+=(t.zip)
import os, stat, zipfile
with zipfile.ZipFile("../t.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for folder, folders, names in os.walk("."):
        for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                link = zipfile.ZipInfo(path[2:])
                link.create_system = 3
                link.external_attr = (stat.S_IFLNK | 0o777) << 16
                z.writestr(link, os.readlink(path))
            else:
                z.write(path)
END
    fi
fi

tap_of faults "$faults" "$stage" "$module" "$work" $tries "$seed" all "${modes[@]}"

# A disk that somebody else fills, at any moment: of a mount of our own.
# shellcheck disable=SC2016
if unshare -m true 2>/dev/null; then
    mkdir -p "$work/to"
    tap_of "full disk" unshare -m bash -c 'mount -t tmpfs -o size=3m tmpfs "$1/to" && shift && exec "$@"' x "$work" \
        "$faults" "$stage" "$module" "$work" $full "$seed" fill copy t.tar.gz
else
    skip "full disk" "no mount here"
fi

# Names of nodes that are never found: this node ends, and says which one it waited for.
mkdir "$work/names"
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$work/names/key")
printf 'node0.site:21000\n127.0.0.1:%s\n' $((20000 + RANDOM % 10000)) >"$work/names/nodes"
capture limit 100 env LD_PRELOAD="$top_builddir/tests/stage/.libs/hung_names.so" "$stage" --to "$work/names" --mode broadcast \
    --nodes "$work/names/nodes" --index 1 --job 1 --key "$work/names/key" --wait 2 "$work/t.tar.gz"
is "$status" 69 "a broadcast does not wait for a name service that hangs"
like "$err" "node0[.]site.* did not come within 2 seconds [(]the address of node0.site cannot be found: the name service does not answer" \
    "and names the node, and why"

done_testing
