# Unit tests of nn/.
if HAVE_CMOCKA
unit_tests += tests/unit/test_nn_ops
endif
nn_test_libs = nn/libnn.la $(CMOCKA_LIBS)
nn_case = tests/unit/nn_case.c tests/unit/nn_case.h

tests_unit_test_nn_ops_SOURCES = tests/unit/test_nn_ops.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_ops_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_ops_LDADD = $(nn_test_libs)
