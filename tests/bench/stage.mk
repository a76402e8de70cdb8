# Benchmarks of staging: `make bench-stage` builds what tests/bench/stage_cpu.sh needs; stage.sh needs nothing.
EXTRA_DIST += tests/bench/stage.sh tests/bench/stage_cpu.sh tests/bench/stage_tables.sh
EXTRA_PROGRAMS += tests/bench/files
tests_bench_files_SOURCES = tests/bench/files.c
tests_bench_files_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
bench-stage: tests/bench/files
.PHONY: bench-stage
CLEANFILES += tests/bench/files$(EXEEXT)
