# Unit tests of spank/stage/.
if HAVE_CMOCKA
unit_tests += tests/unit/test_stage_broadcast tests/unit/test_stage_pace tests/unit/test_stage_tree
endif
stage_test_libs = spank/stage/libstage.la agent/cluster/libcluster.la base/libbase.la $(CMOCKA_LIBS)
tests_unit_test_stage_broadcast_SOURCES = tests/unit/test_stage_broadcast.c tests/unit/unit.h
tests_unit_test_stage_broadcast_CPPFLAGS = $(test_cppflags)
tests_unit_test_stage_broadcast_LDADD = $(stage_test_libs)
tests_unit_test_stage_tree_SOURCES = tests/unit/test_stage_tree.c tests/unit/unit.h
tests_unit_test_stage_tree_CPPFLAGS = $(test_cppflags)
tests_unit_test_stage_tree_LDADD = $(stage_test_libs)
tests_unit_test_stage_pace_SOURCES = tests/unit/test_stage_pace.c tests/unit/unit.h
tests_unit_test_stage_pace_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_test_stage_pace_LDADD = $(stage_test_libs)
