#!/bin/bash
# faults_broadcast.t: as faults.t, when one node reads and others receive; the fault happens to any of them, or to what
# goes between them. In the sandbox, as credentials are made there.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "$0")/../cluster/lib.sh"
on_cluster 1
: "${top_builddir:?run by make check}"
faults=$top_builddir/tests/stage/faults
stage=$top_builddir/hpc-train-stage
module=$top_builddir/tests/stage/.libs/fault.so
sandbox_run test -x "$stage" || skip_all "the sandbox does not see $stage"
folder=$(sandbox_run mktemp -d /tmp/hpc-train-faults.XXXXXX) || exit
at_exit "sandbox_run --root rm -rf '$folder'"
seed=${HPC_TRAIN_SEED:-$RANDOM}
echo "# seed $seed (HPC_TRAIN_SEED=$seed repeats it)"
sandbox_run "$faults" --tree "$folder" || exit
sandbox_run tar -C "$folder/tree" -czf "$folder/t.tar.gz" . || exit

tries=10 full=6 kinds=write,read-error,truncate,net-flip,net-end modes=(broadcast)
if [ -n "${HPC_TRAIN_LONG-}" ]; then
    tries=2000 full=100 kinds=all modes=(broadcast broadcast:t.tar.gz)
fi
run_limit=3000

run() { # WHAT COMMAND...: its TAP is ours
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) ok 0 "${line#ok * - }" ;;
        'not ok '*) ok 1 "${line#not ok * - }" ;;
        1..*) ;;
        *) diag "$line" ;;
        esac
    done < <("${@:2}" 2>&1; status=$?; [ $status = 0 ] || echo "not ok 0 - $1 ended with $status")
}
run faults sandbox_run "$faults" "$stage" "$module" "$folder" $tries "$seed" "$kinds" "${modes[@]}"

# A disk that somebody else fills, at any moment: of a mount of our own.
# shellcheck disable=SC2016
run "full disk" sandbox_run --root unshare -m bash -c 'mount -t tmpfs -o size=9m tmpfs "$1/to" && shift && exec "$@"' x "$folder" \
    "$faults" "$stage" "$module" "$folder" $full "$seed" fill "${modes[@]}"

done_testing
