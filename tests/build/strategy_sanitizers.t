#!/bin/bash
# Every strategy's tests (tests/strategy) once more, with a build that has ASan and UBSan. A finding ends the program that made
# it, with a status that its test does not expect.
# shellcheck source=tests/build/lib.sh
. "$top_srcdir/tests/build/lib.sh"

tree=$top_builddir/sanitizers
sanitized_build "$tree" "hpc-train tests/strategy/compare_weights"
ok $? 'builds with --enable-sanitizers'
for test in "$top_srcdir"/tests/strategy/*.t; do
    # Their long forms show nothing here that the short ones do not.
    tap_of "${test##*/}" env -u HPC_TRAIN_LONG "${sanitized_mpi[@]}" top_builddir="$tree" bash "$test"
done
done_testing
