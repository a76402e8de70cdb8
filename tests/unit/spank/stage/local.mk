# Unit tests of spank/stage/.
if HAVE_CMOCKA
unit_tests += tests/unit/spank/stage/net/test_broadcast tests/unit/spank/stage/tree/test_crew \
	tests/unit/spank/stage/tree/test_tree
endif
stage_test_libs = spank/stage/libstage.la base/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)
tests_unit_spank_stage_net_test_broadcast_SOURCES = tests/unit/spank/stage/net/test_broadcast.c $(cases)
tests_unit_spank_stage_net_test_broadcast_CPPFLAGS = $(test_cppflags)
tests_unit_spank_stage_net_test_broadcast_LDADD = $(stage_test_libs)
tests_unit_spank_stage_tree_test_tree_SOURCES = tests/unit/spank/stage/tree/test_tree.c $(cases)
tests_unit_spank_stage_tree_test_tree_CPPFLAGS = $(test_cppflags)
tests_unit_spank_stage_tree_test_tree_LDADD = $(stage_test_libs)
tests_unit_spank_stage_tree_test_crew_SOURCES = tests/unit/spank/stage/tree/test_crew.c tests/unit/unit.h
tests_unit_spank_stage_tree_test_crew_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_spank_stage_tree_test_crew_LDADD = $(stage_test_libs)
