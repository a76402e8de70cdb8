# Unit tests of the GPUs' helper and of what asks it; the machines are in tests/fixtures/gpu.
if HAVE_CMOCKA
unit_tests += tests/unit/spank/gpu/test_gpu tests/unit/spank/gpu/test_gpu_meet
endif
tests_unit_spank_gpu_test_gpu_SOURCES = tests/unit/spank/gpu/test_gpu.c $(cases)
tests_unit_spank_gpu_test_gpu_CPPFLAGS = $(test_cppflags)
tests_unit_spank_gpu_test_gpu_LDADD = spank/gpu/libgpu.la base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)
tests_unit_spank_gpu_test_gpu_meet_SOURCES = tests/unit/spank/gpu/test_gpu_meet.c tests/unit/unit.h
tests_unit_spank_gpu_test_gpu_meet_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_gpu_test_gpu_meet_LDADD = $(spank_test_libs)

# Found as libnvidia-ml.so.1 in tests/gpu_without/libraries/.libs.
check_LTLIBRARIES += tests/gpu_without/libraries/libnvidia-ml.la
tests_gpu_without_libraries_libnvidia_ml_la_SOURCES = tests/gpu_without/libraries/fake_nvml.c
tests_gpu_without_libraries_libnvidia_ml_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere

gpu_machines = workstation1 workstation2 interleaved2 ac922 quad_socket dgx1 dgx_a100 hgx_h100 dgx2 mig_a100
EXTRA_DIST += tests/fixtures/gpu/make_topology.py \
	$(gpu_machines:%=tests/fixtures/gpu/%) $(gpu_machines:%=tests/fixtures/gpu/%.xml)
