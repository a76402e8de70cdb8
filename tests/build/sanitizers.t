#!/bin/bash
# Builds the command, the unit tests and the fuzz targets again with ASan and UBSan, beside this build,
# and runs there the unit tests, the fuzz corpora and one two-rank training run. A finding ends the
# program that made it.
. "$top_srcdir/tests/build/lib.sh"

tree=$top_builddir/sanitizers
# The longest of all tests: with an equal share of the cores it would still run when the others are through.
renice -n -5 -p $$ >/dev/null 2>&1
sanitized_build "$tree" "hpc-train unit-programs"
ok $? 'builds with --enable-sanitizers'

[ -n "${HPC_TRAIN_LONG-}" ] || export HPC_TRAIN_SHORT=1
run_logged "$tree/unit.out" make -C "$tree" -s -j2 check-unit
ok $? 'unit tests and fuzz corpora are clean'

two_ranks "$tree" env "${sanitized_mpi[@]}" "$tree/hpc-train"
ok $? 'a two-rank training run is clean'
done_testing
