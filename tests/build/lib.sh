# tests/build/lib.sh - what the tests of the build itself share: a second build, a logged run, two
# ranks without a cluster. Sourced; not a test.
# shellcheck shell=bash
# shellcheck source=tests/cluster/lib.sh
. "${top_srcdir:?run this with make check}/tests/cluster/lib.sh"
# shellcheck source=tests/pictures.sh
. "$top_srcdir/tests/pictures.sh"
: "${top_builddir:?run this with make check}"
unset MAKEFLAGS MFLAGS MAKELEVEL

# The command without libtool's script around it, which takes three times as long to start.
hpc_train=$top_builddir/.libs/hpc-train
if [ -x "$hpc_train" ]; then
    export LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
    hpc_train=$top_builddir/hpc-train # a build without shared libraries
fi

# run_logged LOG COMMAND…: its status; the log's end as remarks when it failed.
run_logged() {
    local log=$1 status
    shift
    limit 3600 "$@" >"$log" 2>&1
    status=$?
    [ "$status" -eq 0 ] || diag "exit $status: $*" "$(tail -n 40 "$log")"
    return "$status"
}

# second_build DIR TARGETS CONFIGURE-OPTION…: configures there, again if the first build was, and builds these targets.
second_build() {
    local dir=$1 targets=$2
    shift 2
    [ ! -e "$top_srcdir/config.status" ] || skip_all "the source folder itself is configured"
    mkdir -p "$dir" || return
    [ "$dir/config.status" -nt "$top_builddir/config.status" ] ||
        (cd "$dir" && run_logged configure.out "$top_srcdir/configure" -q "$@") || return
    # shellcheck disable=SC2086 # several words
    run_logged "$dir/make.out" make -C "$dir" -s -j"$(nproc)" $targets
}

# sanitized_build DIR TARGETS: second_build with ASan and UBSan; programs that are started from here on end with a finding.
sanitized_build() {
    # No detect_stack_use_after_return: GCC does not align vectors of 64 bytes on the stack it makes then.
    # HDF5 asks for what a damaged file says, and takes a no.
    export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
    export UBSAN_OPTIONS=print_stacktrace=1
    export LSAN_OPTIONS=suppressions=$top_srcdir/tests/build/lsan.supp:print_suppressions=0
    # At -O2 the checks of the vector loops alone take a minute to compile, and at -O1 everything takes twice as long as at -O0,
    # where only those loops would be too slow.
    local loops
    loops=$(cd "$top_srcdir" && printf '%s\n' nn/backend/ref/*.c | sed 's|[^/]*\.c$|libnn_la-&|; s|c$|lo|')
    second_build "$1" "nn/libnncpu.la ${loops//$'\n'/ }" --enable-sanitizers --without-cuda CFLAGS="-O1 -g1" || return
    # shellcheck disable=SC2086 # several words
    run_logged "$1/rest.out" make -C "$1" -s -j"$(nproc)" CFLAGS="-O0 -g1" $2
}

# What programs that use MPI need besides: the slow unwinder sees through C libraries built without frame pointers.
# Without Open MPI's memory hooks: it writes a jump of 13 bytes over mmap, which is one of 5 in GCC 16's libasan, with munmap's
# and mprotect's behind it, so that the next call of mprotect ends with SIGILL.
# shellcheck disable=SC2034
sanitized_mpi=(ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:verify_asan_link_order=0:fast_unwind_on_malloc=0
    OMPI_MCA_memory=^patcher LD_PRELOAD="$top_builddir/tests/build/.libs/keep_modules.so")

# Of a short run on several ranks: with no size given, the best for the network is measured, for longer than the run takes.
buckets=(--bucket-bytes 100000)

# two_ranks DIR COMMAND…: `COMMAND fit …` as two ranks under mpirun, on the first pictures.
two_ranks() {
    local dir=$1
    shift
    first_pictures "$dir/pictures" || return
    OMP_NUM_THREADS=1 run_logged "$dir/two-ranks.out" mpirun --allow-run-as-root --oversubscribe \
        --bind-to none -n 2 "$@" fit --model mnist-convnet --data "$dir/pictures" \
        --validation-data "$dir/pictures" --epochs 2 --steps-per-epoch 2 --batch-size 4 --verbose 2 \
        --strategy multi-worker-mirrored "${buckets[@]}"
}
