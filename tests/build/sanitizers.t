#!/bin/bash
# Builds the command, the unit tests and the fuzz targets again with ASan and UBSan, beside this build,
# and runs there the unit tests, the fuzz corpora and one two-rank training run. A finding ends the
# program that made it.
. "$top_srcdir/tests/build/lib.sh"

tree=$top_builddir/sanitizers
# At -O2 the checks of the vector loops alone take a minute to compile.
second_build "$tree" "hpc-train unit-programs" --enable-sanitizers CFLAGS="-O1 -g -fno-var-tracking"
ok $? 'builds with --enable-sanitizers'

# No detect_stack_use_after_return: GCC does not align vectors of 64 bytes on the stack it makes then.
# HDF5 asks for what a damaged file says, and takes a no.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$top_srcdir/tests/build/lsan.supp:print_suppressions=0

[ -n "${HPC_TRAIN_LONG-}" ] || export HPC_TRAIN_SHORT=1
run_logged "$tree/unit.out" make -C "$tree" -s check-unit
ok $? 'unit tests and fuzz corpora are clean'

# The slow unwinder sees through C libraries built without frame pointers.
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0:fast_unwind_on_malloc=0
two_ranks "$tree" env LD_PRELOAD="$top_builddir/tests/build/.libs/keep_modules.so" "$tree/hpc-train"
ok $? 'a two-rank training run is clean'
done_testing
