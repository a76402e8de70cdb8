# Benchmarks of nn/, built with `make bench`, run by hand.
EXTRA_PROGRAMS += tests/bench/step
tests_bench_step_SOURCES = tests/bench/step.c
tests_bench_step_LDADD = nn/libnn.la
