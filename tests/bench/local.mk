# Benchmarks, run by hand on a quiet machine: `make bench-data`, `bench-nn` and `bench-stage` build what the scripts need.
EXTRA_PROGRAMS += tests/bench/files tests/bench/input tests/bench/ops
CLEANFILES += tests/bench/files$(EXEEXT) tests/bench/input$(EXEEXT) tests/bench/ops$(EXEEXT)
tests_bench_files_LDADD =
tests_bench_input_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
bench-data: tests/bench/input
bench-nn: tests/bench/ops
bench-stage: tests/bench/files
.PHONY: bench-data bench-nn bench-stage
