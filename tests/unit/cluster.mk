# Unit tests of agent/cluster.
if HAVE_CMOCKA
unit_tests += tests/unit/test_nodelist tests/unit/test_layout tests/unit/test_config tests/unit/test_cluster
endif
cluster_test_libs = agent/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)

tests_unit_test_nodelist_SOURCES = tests/unit/test_nodelist.c tests/unit/unit.h
tests_unit_test_nodelist_CPPFLAGS = $(test_cppflags)
tests_unit_test_nodelist_LDADD = $(cluster_test_libs)
tests_unit_test_layout_SOURCES = tests/unit/test_layout.c tests/unit/unit.h
tests_unit_test_layout_CPPFLAGS = $(test_cppflags)
tests_unit_test_layout_LDADD = $(cluster_test_libs)
tests_unit_test_cluster_SOURCES = tests/unit/test_cluster.c tests/unit/unit.h
tests_unit_test_cluster_CPPFLAGS = $(test_cppflags)
tests_unit_test_cluster_LDADD = $(cluster_test_libs)
tests_unit_test_config_SOURCES = tests/unit/test_config.c tests/unit/unit.h
tests_unit_test_config_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
tests_unit_test_config_LDADD = $(cluster_test_libs) $(JANSSON_LIBS)

# Unit tests of spank/, linked without Slurm.
if HAVE_CMOCKA
unit_tests += tests/unit/test_child tests/unit/test_errand tests/unit/test_options tests/unit/test_ports tests/unit/test_removal tests/unit/test_results \
	tests/unit/test_staging_races tests/unit/test_tmpdir
scaled_tests += tests/unit/test_removal tests/unit/test_staging_races
endif
spank_test_libs = spank/libspank.la agent/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)

tests_unit_test_child_SOURCES = tests/unit/test_child.c tests/unit/unit.h
tests_unit_test_child_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_child_LDADD = $(spank_test_libs)
tests_unit_test_errand_SOURCES = tests/unit/test_errand.c tests/unit/unit.h
tests_unit_test_errand_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_errand_LDADD = $(spank_test_libs)
tests_unit_test_options_SOURCES = tests/unit/test_options.c tests/unit/unit.h
tests_unit_test_options_CPPFLAGS = $(test_cppflags)
tests_unit_test_options_LDADD = $(spank_test_libs)
place = tests/unit/place.c tests/unit/place.h
tests_unit_test_removal_SOURCES = tests/unit/test_removal.c $(place) tests/unit/unit.h
tests_unit_test_removal_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_removal_LDADD = $(spank_test_libs)
tests_unit_test_staging_races_SOURCES = tests/unit/test_staging_races.c $(place) tests/unit/unit.h
tests_unit_test_staging_races_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_staging_races_LDADD = spank/stage/libstage.la $(spank_test_libs)
tests_unit_test_tmpdir_SOURCES = tests/unit/test_tmpdir.c $(place) tests/unit/unit.h
tests_unit_test_tmpdir_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_tmpdir_LDADD = $(spank_test_libs)
tests_unit_test_results_SOURCES = tests/unit/test_results.c tests/unit/unit.h
tests_unit_test_results_CPPFLAGS = $(test_cppflags)
tests_unit_test_results_LDADD = spank/libagree.la $(spank_test_libs)
tests_unit_test_ports_SOURCES = tests/unit/test_ports.c tests/unit/unit.h
tests_unit_test_ports_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_ports_LDADD = spank/libagree.la $(spank_test_libs)
tests_unit_test_share_SOURCES = tests/unit/test_share.c tests/unit/unit.h
tests_unit_test_share_CPPFLAGS = $(test_cppflags)
tests_unit_test_share_LDADD = $(spank_test_libs)

# Measured times and memory: not among the unit tests, which also run under valgrind and sanitizers.
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_scale
TESTS += tests/unit/test_scale
endif
tests_unit_test_scale_SOURCES = tests/unit/test_scale.c tests/unit/unit.h
tests_unit_test_scale_CPPFLAGS = $(test_cppflags)
tests_unit_test_scale_LDADD = $(spank_test_libs)
