# Benchmark of the input pipeline: `make bench-data` builds it; tests/bench/input.py runs it beside tf.data and torch.
EXTRA_PROGRAMS += tests/bench/input
tests_bench_input_SOURCES = tests/bench/input.c
tests_bench_input_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_bench_input_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
tests_bench_input_LDADD = $(hpct_parts)
bench-data: tests/bench/input
.PHONY: bench-data
CLEANFILES += tests/bench/input$(EXEEXT)
# Several ranks over links of a rate, prediction and measurement, beside TensorFlow and torch: scripts alone.
EXTRA_DIST += tests/bench/cluster_peer_tf.py tests/bench/cluster_peer_torch.py tests/bench/cluster_peers.sh \
	tests/bench/lossy.sh tests/bench/tcp.sh tests/bench/overlap.py tests/bench/plan_check.sh \
	tests/bench/checkpoint.sh tests/bench/restart.sh tests/bench/speedup.sh tests/bench/speedup_lib.sh tests/bench/strong_scaling.sh tests/bench/w1_comm.sh
EXTRA_DIST += tests/bench/input.py tests/bench/input_tf.py tests/bench/input_torch.py
