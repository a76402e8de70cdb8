# tests/: every test prints TAP; automake's driver counts each `ok` line.
TEST_EXTENSIONS = .t
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(LOG_DRIVER)
LOG_COMPILER = $(BASH) $(top_srcdir)/tests/run
T_LOG_COMPILER = $(LOG_COMPILER) $(BASH)
EXTRA_DIST += tests/run
BASH = bash

# OMP_WAIT_POLICY: tests that run side by side share the cores, so their threads do not spin.
# OMPI_MCA_…: ranks of one machine; Open MPI 5 finds no way between two by another interface that has an IPv6 address.
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	OMPI_MCA_btl_tcp_if_include=lo; export OMPI_MCA_btl_tcp_if_include; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	HPC_TRAIN_UNTESTED='$(hpct_untested)'; export HPC_TRAIN_UNTESTED;

# Unit tests: cmocka programs, one per file or idea under test. `unit_tests` is what
# check-valgrind runs once more under valgrind.
unit_tests =
fuzz_targets =
long_tests =
scaled_tests =
if HAVE_CMOCKA
unit_tests += tests/unit/test_share tests/unit/test_watch # they mostly wait: not at the end, alone
unit_tests += tests/unit/test_status
endif
check_PROGRAMS += $(unit_tests) $(fuzz_targets)
TESTS += $(unit_tests) $(fuzz_targets)

# Tests of the build itself: a second one with sanitizers, valgrind, what configure says. The two longest, which compute, come
# first, and beside them those of the cluster, which mostly wait.
second_build_tests = tests/build/sanitizers.t tests/build/valgrind.t
build_tests = tests/build/command.t tests/build/completion.t tests/build/configure.t tests/build/documents.t \
	tests/build/data.t tests/build/examples.t tests/build/install.t tests/build/kinds.t tests/build/models.t tests/build/options.t tests/build/plan.t tests/build/training.t
TESTS += $(second_build_tests)
include tests/cluster/local.mk
apart_tests = tests/apart/device.t tests/apart/ranks.t tests/apart/replicas.t tests/apart/servers.t
TESTS += tests/apart/replicas.t tests/apart/servers.t $(build_tests)
long_tests += tests/build/strategy_sanitizers.t
scaled_tests += tests/build/valgrind.t
EXTRA_DIST += $(second_build_tests) $(build_tests) tests/build/strategy_sanitizers.t tests/build/lib.sh tests/build/lsan.supp tests/build/valgrind.supp
check_LTLIBRARIES += tests/build/keep_modules.la
tests_build_keep_modules_la_SOURCES = tests/build/keep_modules.c
tests_build_keep_modules_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere

# Programs that include tests/unit/allocations.h.
count_allocations = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc
test_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_status_SOURCES = tests/unit/test_status.c tests/unit/unit.h
tests_unit_test_status_CPPFLAGS = $(test_cppflags)
tests_unit_test_status_LDADD = base/libbase.la $(CMOCKA_LIBS)

include tests/unit/cluster.mk
include tests/unit/cuda.mk
include tests/unit/gpu.mk
include tests/unit/nn.mk
include tests/strategy/local.mk
include tests/unit/agent.mk
include tests/unit/stage.mk
include tests/bench/data.mk
include tests/bench/nn.mk
include tests/bench/stage.mk
include tests/apart/local.mk
include tests/emulated/local.mk
include tests/peers/data.mk
include tests/peers/local.mk
include tests/fuzz/local.mk
EXTRA_DIST += tests/distros/bare_system.sh tests/distros/order tests/distros/run
include tests/gpu/local.mk
include tests/results/local.mk
include tests/stage/local.mk
include tests/fuzz/agent.mk
include tests/packages/local.mk

# Suites that take minutes: `make check-long` runs these and, with HPC_TRAIN_LONG=1 set, those of
# `make check` that try more cases then.
check-long: check-programs
	HPC_TRAIN_LONG=1 $(MAKE) check-TESTS TESTS="$(long_tests) $(scaled_tests)"

# Everything that `make check` needs, without running it.
check-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)

# The unit tests and the fuzz targets' corpora alone (they need no cluster), with what they start and read.
unit-programs: $(unit_tests) $(fuzz_targets) hpc-train-gpus hpc-train-stage tests/unit/libnvidia-ml.la \
    etc/plugstack.conf.d/hpc-train.conf
check-unit: unit-programs
	$(MAKE) check-TESTS TESTS="$(unit_tests) $(fuzz_targets)"

# The unit tests once more, under valgrind; any error or definite leak fails. oneDNN is held to SSE:
# the matrix product that it generates for AVX2 loads (and ignores) what lies behind its own buffers.
# HPC_TRAIN_SHORT=1: fewer random cases.
# Left out, for half a minute and more each: the profile of a whole network, and the operations' random cases, which run
# with ASan.
# Arithmetic and races that the sanitizers see in full. And, but in check-long, those that train, and kernels that take long.
not_under_valgrind = tests/unit/test_cuda_dnn tests/unit/test_cuda_loss tests/unit/test_cuda_ops tests/unit/test_cuda_updates tests/unit/test_bench tests/unit/test_nn_ops tests/unit/test_nn_random tests/unit/test_nn_shard tests/unit/test_plan \
	tests/unit/test_removal tests/unit/test_sampler \
	$(if $(HPC_TRAIN_LONG),,tests/unit/test_cuda_head tests/unit/test_cuda_norm tests/unit/test_cuda_small \
	tests/unit/test_nn_stage tests/unit/test_nn_step tests/unit/test_nn_train)
under_valgrind = $(filter-out $(not_under_valgrind),$(unit_tests))
check-valgrind: $(under_valgrind:=.valgrind)
%.valgrind: %
	@HPC_TRAIN_SHORT=1 DNNL_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=SSE41 top_srcdir='$(abs_top_srcdir)' \
	  top_builddir='$(abs_top_builddir)' $(LIBTOOL) --quiet --mode=execute \
	  valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite $< \
	  >$<.valgrind.log 2>&1 || { echo "valgrind found something in $<:"; cat $<.valgrind.log; exit 1; }
.PHONY: check-long check-programs check-unit check-valgrind unit-programs
