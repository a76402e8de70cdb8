#!/bin/bash
# The unit tests and one two-rank training run under valgrind: no invalid access, no use of
# uninitialised memory, nothing definitely lost.
. "$top_srcdir/tests/build/lib.sh"

command -v valgrind >/dev/null || skip_all 'valgrind is not installed'
cd "$top_builddir" || exit 1
tree=$top_builddir/valgrind
mkdir -p "$tree"

run_logged "$tree/unit.out" make -s -k -j2 check-valgrind
ok $? 'unit tests are clean'

# Fair scheduling: the watch's thread must get its turn beside a computing one.
two_ranks "$tree" env DNNL_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=SSE41 ./libtool --quiet \
    --mode=execute valgrind --quiet --error-exitcode=99 --leak-check=full --fair-sched=yes \
    --errors-for-leak-kinds=definite --keep-debuginfo=yes \
    --suppressions="$top_srcdir/tests/build/valgrind.supp" ./hpc-train
ok $? 'a two-rank training run is clean'
done_testing
