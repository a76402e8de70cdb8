# Unit tests of base/cluster, and of spank/, linked without Slurm.
if HAVE_CMOCKA
unit_tests += \
	tests/unit/spank/spec/test_spec tests/unit/base/cluster/test_cluster tests/unit/base/cluster/test_config \
	tests/unit/base/cluster/test_layout tests/unit/base/cluster/test_nodelist \
	tests/unit/spank/agree/test_network tests/unit/spank/agree/test_ports tests/unit/spank/agree/test_results \
	tests/unit/spank/gpu/test_gpu tests/unit/spank/gpu/test_gpu_meet \
	tests/unit/spank/stage/net/test_broadcast tests/unit/spank/stage/test_staging_races \
	tests/unit/spank/stage/tree/test_crew tests/unit/spank/stage/tree/test_tree \
	tests/unit/spank/test_child tests/unit/spank/test_describe tests/unit/spank/test_timed_child tests/unit/spank/test_given \
	tests/unit/spank/test_gpu_choose tests/unit/spank/test_nodes_asked tests/unit/spank/test_options \
	tests/unit/spank/test_removal tests/unit/spank/test_script_lines tests/unit/spank/test_settings \
	tests/unit/spank/test_tmpdir
scaled_tests += tests/unit/spank/test_removal tests/unit/spank/stage/test_staging_races
# Measured times and memory: not among the unit tests, which also run under valgrind and sanitizers.
check_PROGRAMS += tests/unit/spank/test_scale
scale_tests += tests/unit/spank/test_scale
scaled_tests += tests/unit/spank/test_scale
endif
spank_test_libs = $(test_helpers) spank/libspank.la base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)
agree_test_libs = spank/libagree.la $(spank_test_libs)
stage_test_libs = spank/stage/libstage.la $(spank_test_libs)
tests_unit_spank_spec_test_spec_LDADD = spank/spec/libspec.la $(spank_test_libs)
tests_unit_spank_agree_test_network_LDADD = $(agree_test_libs)
tests_unit_spank_agree_test_ports_LDADD = $(agree_test_libs)
tests_unit_spank_agree_test_results_LDADD = $(agree_test_libs)
tests_unit_spank_gpu_test_gpu_LDADD = spank/gpu/libgpu.la $(spank_test_libs)
tests_unit_spank_gpu_test_gpu_meet_LDADD = $(spank_test_libs)
tests_unit_spank_stage_net_test_broadcast_LDADD = $(stage_test_libs)
tests_unit_spank_stage_test_staging_races_LDADD = $(stage_test_libs)
tests_unit_spank_stage_tree_test_crew_LDADD = $(stage_test_libs)
tests_unit_spank_stage_tree_test_tree_LDADD = $(stage_test_libs)
tests_unit_spank_test_child_LDADD = $(spank_test_libs)
tests_unit_spank_test_describe_LDADD = $(spank_test_libs)
tests_unit_spank_test_timed_child_LDADD = $(spank_test_libs)
tests_unit_spank_test_given_LDADD = $(spank_test_libs)
tests_unit_spank_test_gpu_choose_LDADD = $(spank_test_libs)
tests_unit_spank_test_nodes_asked_LDADD = $(spank_test_libs)
tests_unit_spank_test_options_LDADD = $(spank_test_libs)
tests_unit_spank_test_removal_LDADD = $(spank_test_libs)
tests_unit_spank_test_scale_LDADD = $(spank_test_libs)
tests_unit_spank_test_script_lines_LDADD = $(spank_test_libs)
tests_unit_spank_test_settings_LDADD = $(spank_test_libs)
tests_unit_spank_test_share_LDADD = $(agree_test_libs)
tests_unit_spank_test_tmpdir_LDADD = $(spank_test_libs)

# NVML's stand-in, found as libnvidia-ml.so.1 in tests/gpu_without/libraries/.libs, and the machines that it describes.
check_LTLIBRARIES += tests/gpu_without/libraries/libnvidia-ml.la
tests_gpu_without_libraries_libnvidia_ml_la_SOURCES = tests/gpu_without/libraries/fake_nvml.c
tests_gpu_without_libraries_libnvidia_ml_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere
