# Benchmarks, run by hand on a quiet machine: `make bench-data`, `bench-nn` and `bench-stage` build what the scripts need.
EXTRA_PROGRAMS += tests/bench/files tests/bench/input tests/bench/ops
CLEANFILES += tests/bench/files$(EXEEXT) tests/bench/input$(EXEEXT) tests/bench/ops$(EXEEXT)
tests_bench_files_LDADD =
tests_bench_input_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
bench-data: tests/bench/input
bench-nn: tests/bench/ops
bench-stage: tests/bench/files
.PHONY: bench-data bench-nn bench-stage
EXTRA_DIST += tests/bench/checkpoint.sh tests/bench/cluster_peer_tf.py tests/bench/cluster_peer_torch.py \
	tests/bench/cluster_peers.sh tests/bench/input.py tests/bench/input_tf.py tests/bench/input_torch.py tests/bench/lossy.sh \
	tests/bench/overlap.py tests/bench/peer_lib.py tests/bench/peer_tf.py tests/bench/peer_torch.py tests/bench/peers.py \
	tests/bench/plan_check.sh tests/bench/restart.sh tests/bench/speedup.sh tests/bench/speedup_lib.sh tests/bench/stage.sh \
	tests/bench/stage_cpu.sh tests/bench/stage_tables.sh tests/bench/strong_scaling.sh tests/bench/tcp.sh tests/bench/w1_comm.sh
