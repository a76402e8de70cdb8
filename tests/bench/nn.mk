# Benchmarks of nn/: `make bench-nn` builds them; run by hand on a quiet machine.
EXTRA_PROGRAMS += tests/bench/ops
tests_bench_ops_SOURCES = tests/bench/ops.c $(nn_case)
tests_bench_ops_LDADD = nn/libnn.la
bench-nn: tests/bench/ops
.PHONY: bench-nn
CLEANFILES += tests/bench/ops$(EXEEXT)
# Beside TensorFlow and PyTorch: tests/bench/peers.py, which calls the other two.
EXTRA_DIST += tests/bench/peers.py tests/bench/peer_lib.py tests/bench/peer_tf.py tests/bench/peer_torch.py
