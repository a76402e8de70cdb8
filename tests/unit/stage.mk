# Unit tests of spank/stage/.
if HAVE_CMOCKA
unit_tests += tests/unit/test_stage_tree
endif
tests_unit_test_stage_tree_SOURCES = tests/unit/test_stage_tree.c tests/unit/unit.h
tests_unit_test_stage_tree_CPPFLAGS = $(test_cppflags)
tests_unit_test_stage_tree_LDADD = spank/stage/libstage.la agent/cluster/libcluster.la \
	base/libbase.la $(CMOCKA_LIBS)
