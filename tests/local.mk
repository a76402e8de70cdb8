# tests/: every test prints TAP; automake's driver counts each `ok` line.
TEST_EXTENSIONS = .t
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
T_LOG_DRIVER = $(LOG_DRIVER)
LOG_COMPILER = $(BASH) $(top_srcdir)/tests/run
T_LOG_COMPILER = $(LOG_COMPILER) $(BASH)
# All that is below tests/ goes into a distribution.
EXTRA_DIST += $(foreach kind,awk c cc h json md py sh supp t,$(foreach folder,tests tests/* tests/*/* tests/*/*/* tests/*/*/*/*,\
	$(wildcard $(srcdir)/$(folder)/*.$(kind)))) tests/fixtures tests/fuzz/corpus tests/link tests/lint tests/run tests/distros/order \
	tests/distros/run tests/gpu/bundle tests/gpu/run tests/gpu_without/cudnn_accepts/write tests/gpu_without/kernels/resources \
	tests/gpu_without/machine/traffic
BASH = bash

# OMP_WAIT_POLICY: tests that run side by side share the cores, so their threads do not spin.
# OMPI_MCA_…: ranks of one machine; Open MPI 5 finds no way between two by another interface that has an IPv6 address.
# HWLOC_COMPONENTS: mpirun, and what it starts, do not look at all PCI devices, each of which takes long in a virtual machine.
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	OMPI_MCA_btl_tcp_if_include=lo; export OMPI_MCA_btl_tcp_if_include; \
	HWLOC_COMPONENTS=-linux:pci,-pci; export HWLOC_COMPONENTS; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	HPC_TRAIN_UNTESTED='$(hpct_untested)'; export HPC_TRAIN_UNTESTED;

# Unit tests: cmocka programs, one per file or idea under test, in the folder that the source has below the root.
# `unit_tests` is what check-valgrind runs once more under valgrind; `rank_tests` train as several ranks.
unit_tests =
rank_tests =
scale_tests =
fuzz_targets =
long_tests =
scaled_tests =
if HAVE_CMOCKA
unit_tests += $(waiting_unit_tests) tests/unit/base/test_status
endif
waiting_unit_tests = tests/unit/agent/comm/test_standstill tests/unit/agent/comm/test_watch \
	tests/unit/spank/test_share # first: not at the end, alone
check_PROGRAMS += $(unit_tests) $(fuzz_targets)

# NAME.c that a test loads into other programs as a shared library.
test_module = -module -avoid-version -shared -rpath /nowhere
check_LTLIBRARIES += tests/build/keep_modules.la
tests_build_keep_modules_la_LDFLAGS = $(test_module)

# Tests of the build itself: a second one with sanitizers, valgrind, what configure says.
sanitizer_tests = tests/build/sanitizers.t tests/build/valgrind.t
slow_build_tests = tests/build/configure.t tests/build/options.t
build_tests = $(slow_build_tests) tests/build/check.t tests/build/command.t tests/build/completion.t tests/build/documents.t \
	tests/build/data.t tests/build/examples.t tests/build/install.t tests/build/kinds.t tests/build/layers.t tests/build/names.t \
	tests/build/models.t tests/build/plan.t tests/build/run.t tests/build/top.t tests/build/training.t
include tests/cluster/local.mk
device_tests = tests/gpu_without/machine/checkpoints.t tests/gpu_without/machine/device.t \
	tests/gpu_without/machine/labels.t tests/gpu_without/machine/ranks.t tests/gpu_without/machine/regularizers.t \
	tests/gpu_without/machine/replicas.t tests/gpu_without/machine/servers.t
long_tests += tests/build/strategy_sanitizers.t
scaled_tests += tests/build/configure.t tests/build/valgrind.t $(device_tests)

# A program of a test is NAME.c, linked with tests/unit/libhelpers.la and the libraries of training, of which it loads those that it
# calls. Only one that needs something else has lines in a local.mk.
LDADD = $(test_helpers) $(fuzz_driver) $(hpct_parts) $(CMOCKA_LIBS) $(JANSSON_LIBS) $(LIBARCHIVE_LIBS) -lpthread -lm
test_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests/%: private AM_LDFLAGS += -Wl,--as-needed
tests/%.o tests/%.lo: AM_CPPFLAGS += -D_GNU_SOURCE $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS) $(LIBARCHIVE_CFLAGS) $(ONEDNN_CPPFLAGS) $(SLURM_CPPFLAGS)
if HAVE_CMOCKA
test_helpers = tests/unit/libhelpers.la
check_LTLIBRARIES += $(test_helpers)
endif
nn_case = tests/unit/nn/nn_case.c
ops_check = tests/unit/nn/backend/ops_check.c $(nn_case)
tests_unit_libhelpers_la_SOURCES = $(ops_check) tests/unit/agent/checkpoint/folder.c tests/unit/agent/comm/watch_group.c \
	tests/unit/agent/data/pictures.c tests/unit/agent/data/trees.c tests/unit/nn/nn_small.c tests/unit/nn/split/shard_models.c \
	tests/unit/nn/split/shard_parts.c tests/unit/spank/place.c tests/unit/unit.c
# Of programs that include tests/unit/allocations.h: calls that allocate are counted in all that is linked statically.
count_allocations = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc

include tests/unit/spank/local.mk
include tests/gpu_without/kernels/local.mk
include tests/gpu_without/cudnn_accepts/local.mk
include tests/unit/nn/local.mk
include tests/strategy/local.mk
include tests/bench/local.mk
include tests/unit/agent/local.mk
include tests/gpu_without/machine/local.mk
include tests/peers/local.mk
include tests/fuzz/local.mk
include tests/results/local.mk
include tests/stage/local.mk
include tests/packages/local.mk

# Linked without libtool's script and with the fastest linker there is: that takes a quarter of the time.
linked_fast = $(filter-out tests/results/called,$(filter tests/%,$(check_PROGRAMS)))
$(linked_fast): private LIBTOOL = $(SHELL) $(top_srcdir)/tests/link
$(linked_fast): private CCLD += $(FAST_LINKER)

# The parts of `make check`, each a target of its own (`make check-cluster`) and a word of `./quickstart check`. In
# TESTS they are mixed: those that wait for a cluster go on beside those that compute.
parts = unit build sanitizers cluster strategies
unit_part = $(unit_tests) $(fuzz_targets)
build_part = $(build_tests) $(scale_tests) $(results_tests) $(stage_tests) tests/peers/data.t $(peer_tests)
sanitizers_part = $(sanitizer_tests)
cluster_part = $(cluster_tests)
strategies_part = $(strategy_tests) $(rank_tests) $(device_tests)
all_tests = $(sanitizer_tests) $(slow_cluster_tests) $(slow_build_tests) $(device_tests) $(early_cluster_tests) \
	$(strategy_tests) $(rank_tests) $(late_cluster_tests) $(build_tests) $(results_tests) $(stage_tests) tests/peers/data.t \
	$(peer_tests) $(scale_tests) $(unit_part)
TESTS += $(all_tests)
$(filter-out check-unit,$(parts:%=check-%)): check-%: check-programs
	$(MAKE) check-TESTS TESTS="$($*_part)"
# NAME/PART of each test, for the table of ./quickstart check.
list-parts:
	@$(foreach part,$(parts),printf '%s $(part)\n' $($(part)_part);)

# The form of sources, scripts and man pages, in a checkout; `make format` gives it to C and CUDA.
lint:
	$(top_srcdir)/tests/lint
format:
	$(top_srcdir)/tests/lint --format

# In a minute, while one works: unit tests that do not wait, with fewer random cases, and the arrows between folders.
quick_tests = $(filter-out $(waiting_unit_tests) tests/unit/spank/test_child tests/unit/spank/test_removal \
	tests/unit/spank/agree/test_ports tests/gpu_without/libraries/test_nccl% tests/gpu_without/kernels/%, \
	$(unit_tests)) $(fuzz_targets) tests/build/layers.t tests/build/names.t
check-quick: check-programs
	HPC_TRAIN_SHORT=1 $(MAKE) check-TESTS TESTS="$(quick_tests)"

# Suites that take minutes: `make check-long` runs these and, with HPC_TRAIN_LONG=1 set, those of
# `make check` that try more cases then.
check-long: check-programs
	HPC_TRAIN_LONG=1 $(MAKE) check-TESTS TESTS="$(long_tests) $(scaled_tests)"

# Everything that `make check` needs, without running it.
check-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)

list-programs:
	@printf '%s\n' $(check_PROGRAMS) $(check_LTLIBRARIES)

# The unit tests and the fuzz targets' corpora alone (they need no cluster), with what they start and read; nothing else is built.
unit-programs: $(unit_tests) $(fuzz_targets) unit-needs
unit-needs: hpc-train-gpus hpc-train-stage tests/gpu_without/libraries/libnvidia-ml.la etc/plugstack.conf.d/hpc-train.conf
check-unit: unit-programs
	$(MAKE) check-TESTS check_PROGRAMS= check_LTLIBRARIES= TESTS="$(unit_tests) $(fuzz_targets)"

# Under valgrind, which finds what is read before it is set; any error or definite leak fails. `make check` runs what reads
# texts, files and messages that others have written; check-long all but those that take a minute. HPC_TRAIN_SHORT=1: fewer
# random cases. oneDNN is held to SSE: the matrix product that it generates for AVX2 loads (and ignores) what lies behind its own
# buffers.
readers = agent/checkpoint/test_manifest agent/checkpoint/test_store base/cluster/test_cluster base/cluster/test_config \
	base/cluster/test_nodelist spank/spec/test_spec agent/comm/test_wire agent/data/test_archives \
	agent/data/test_foreign agent/data/test_formats agent/data/test_labels agent/ps/test_ps agent/report/test_report \
	agent/results/test_events agent/top/test_top base/net/test_frame nn/file/keras/test_keras nn/file/test_onnx \
	nn/file/test_torchvision nn/file/test_weights spank/agree/test_results spank/stage/net/test_broadcast spank/stage/tree/test_tree \
	spank/test_options spank/test_script_lines spank/test_settings
slow_under_valgrind = tests/gpu_without/cudnn_accepts/test_cudnn_accepts tests/gpu_without/kernels/test_loss \
	tests/gpu_without/kernels/test_ops tests/gpu_without/kernels/test_updates tests/gpu_without/libraries/test_cudnn_plans \
	tests/unit/agent/cost/test_bench tests/unit/agent/cost/test_plan tests/unit/agent/data/test_sampler \
	tests/unit/nn/backend/test_conv2d tests/unit/nn/backend/test_ops tests/unit/nn/run/test_random \
	tests/unit/nn/split/test_shard tests/unit/spank/test_removal
under_valgrind = $(if $(HPC_TRAIN_LONG),$(filter-out $(slow_under_valgrind),$(unit_tests)),$(filter $(readers:%=tests/unit/%),$(unit_tests)))
check-valgrind: $(under_valgrind:=.valgrind)
	@for test in $(readers:%=tests/unit/%.c); do ls '$(abs_top_srcdir)'/$$test >/dev/null || exit 1; done
%.valgrind: %
	@HPC_TRAIN_SHORT=1 DNNL_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=SSE41 top_srcdir='$(abs_top_srcdir)' \
	  top_builddir='$(abs_top_builddir)' $(LIBTOOL) --quiet --mode=execute \
	  valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
	  --suppressions='$(abs_top_srcdir)/tests/build/valgrind.supp' $< \
	  >$<.valgrind.log 2>&1 || { echo "valgrind found something in $<:"; cat $<.valgrind.log; exit 1; }
.PHONY: lint format check-long check-programs check-quick check-valgrind \
	list-parts list-programs unit-needs unit-programs $(parts:%=check-%)
