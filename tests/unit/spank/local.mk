# Unit tests of base/cluster and spank/spec.
if HAVE_CMOCKA
unit_tests += tests/unit/base/cluster/test_nodelist tests/unit/base/cluster/test_layout \
	tests/unit/base/cluster/test_config tests/unit/base/cluster/test_cluster \
	tests/unit/spank/spec/test_spec
endif
environment_cases = tests/unit/environment.h $(cases)
words = tests/unit/spank/words.h
cluster_test_libs = base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)

tests_unit_base_cluster_test_nodelist_SOURCES = tests/unit/base/cluster/test_nodelist.c $(cases)
tests_unit_base_cluster_test_nodelist_CPPFLAGS = $(test_cppflags)
tests_unit_base_cluster_test_nodelist_LDADD = $(cluster_test_libs)
tests_unit_base_cluster_test_layout_SOURCES = tests/unit/base/cluster/test_layout.c $(cases)
tests_unit_base_cluster_test_layout_CPPFLAGS = $(test_cppflags)
tests_unit_base_cluster_test_layout_LDADD = $(cluster_test_libs)
tests_unit_base_cluster_test_cluster_SOURCES = tests/unit/base/cluster/test_cluster.c $(environment_cases)
tests_unit_base_cluster_test_cluster_CPPFLAGS = $(test_cppflags)
tests_unit_base_cluster_test_cluster_LDADD = $(cluster_test_libs)
tests_unit_base_cluster_test_config_SOURCES = tests/unit/base/cluster/test_config.c $(environment_cases)
tests_unit_base_cluster_test_config_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
tests_unit_base_cluster_test_config_LDADD = $(cluster_test_libs) $(JANSSON_LIBS)
tests_unit_spank_spec_test_spec_SOURCES = tests/unit/spank/spec/test_spec.c $(cases)
tests_unit_spank_spec_test_spec_CPPFLAGS = $(test_cppflags)
tests_unit_spank_spec_test_spec_LDADD = spank/spec/libspec.la $(cluster_test_libs)

# Unit tests of spank/, linked without Slurm.
if HAVE_CMOCKA
unit_tests += tests/unit/spank/test_child tests/unit/spank/test_describe tests/unit/spank/test_errand \
	tests/unit/spank/test_given tests/unit/spank/test_gpu_choose tests/unit/spank/test_nodes_asked tests/unit/spank/test_script_lines \
	tests/unit/spank/test_options tests/unit/spank/test_settings \
	tests/unit/spank/agree/test_ports tests/unit/spank/test_removal tests/unit/spank/agree/test_results \
	tests/unit/spank/stage/test_staging_races tests/unit/spank/test_tmpdir
scaled_tests += tests/unit/spank/test_removal tests/unit/spank/stage/test_staging_races
endif
spank_test_libs = spank/libspank.la base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)

tests_unit_spank_test_child_SOURCES = tests/unit/spank/test_child.c tests/unit/unit.h
tests_unit_spank_test_child_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_test_child_LDADD = $(spank_test_libs)
tests_unit_spank_test_errand_SOURCES = tests/unit/spank/test_errand.c tests/unit/unit.h
tests_unit_spank_test_errand_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_test_errand_LDADD = $(spank_test_libs)
tests_unit_spank_test_describe_SOURCES = tests/unit/spank/test_describe.c $(environment_cases)
tests_unit_spank_test_describe_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_describe_LDADD = $(spank_test_libs)
tests_unit_spank_test_given_SOURCES = tests/unit/spank/test_given.c $(words) $(environment_cases)
tests_unit_spank_test_given_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_given_LDADD = $(spank_test_libs)
tests_unit_spank_test_gpu_choose_SOURCES = tests/unit/spank/test_gpu_choose.c $(cases)
tests_unit_spank_test_gpu_choose_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_gpu_choose_LDADD = $(spank_test_libs)
tests_unit_spank_test_nodes_asked_SOURCES = tests/unit/spank/test_nodes_asked.c $(words) $(cases)
tests_unit_spank_test_nodes_asked_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_nodes_asked_LDADD = $(spank_test_libs)
tests_unit_spank_test_script_lines_SOURCES = tests/unit/spank/test_script_lines.c $(words) $(cases)
tests_unit_spank_test_script_lines_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_script_lines_LDADD = $(spank_test_libs)
tests_unit_spank_test_options_SOURCES = tests/unit/spank/test_options.c $(words) $(environment_cases)
tests_unit_spank_test_options_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_options_LDADD = $(spank_test_libs)
tests_unit_spank_test_settings_SOURCES = tests/unit/spank/test_settings.c $(words) $(cases)
tests_unit_spank_test_settings_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_settings_LDADD = $(spank_test_libs)
place = tests/unit/spank/place.c tests/unit/spank/place.h
tests_unit_spank_test_removal_SOURCES = tests/unit/spank/test_removal.c $(place) tests/unit/unit.h
tests_unit_spank_test_removal_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_test_removal_LDADD = $(spank_test_libs)
tests_unit_spank_stage_test_staging_races_SOURCES = tests/unit/spank/stage/test_staging_races.c $(place) \
	tests/unit/unit.h
tests_unit_spank_stage_test_staging_races_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_stage_test_staging_races_LDADD = spank/stage/libstage.la $(spank_test_libs)
tests_unit_spank_test_tmpdir_SOURCES = tests/unit/spank/test_tmpdir.c $(place) tests/unit/unit.h
tests_unit_spank_test_tmpdir_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_test_tmpdir_LDADD = $(spank_test_libs)
tests_unit_spank_agree_test_results_SOURCES = tests/unit/spank/agree/test_results.c tests/unit/unit.h
tests_unit_spank_agree_test_results_CPPFLAGS = $(test_cppflags)
tests_unit_spank_agree_test_results_LDADD = spank/libagree.la $(spank_test_libs)
tests_unit_spank_agree_test_ports_SOURCES = tests/unit/spank/agree/test_ports.c tests/unit/unit.h
tests_unit_spank_agree_test_ports_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_agree_test_ports_LDADD = spank/libagree.la $(spank_test_libs)
tests_unit_spank_test_share_SOURCES = tests/unit/spank/test_share.c tests/unit/unit.h
tests_unit_spank_test_share_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_share_LDADD = spank/libspank.la spank/libagree.la base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)

# Measured times and memory: not among the unit tests, which also run under valgrind and sanitizers.
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/spank/test_scale
scale_tests += tests/unit/spank/test_scale
scaled_tests += tests/unit/spank/test_scale
endif
tests_unit_spank_test_scale_SOURCES = tests/unit/spank/test_scale.c tests/unit/unit.h
tests_unit_spank_test_scale_CPPFLAGS = $(test_cppflags)
tests_unit_spank_test_scale_LDADD = $(spank_test_libs)
