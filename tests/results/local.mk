# tests/results/: what a run of fit leaves behind, whatever happens to it.
results_tests = tests/results/faults.t tests/results/outputs.t
TESTS += $(results_tests)
EXTRA_DIST += $(results_tests) tests/results/lib.sh
scaled_tests += tests/results/faults.t
check_LTLIBRARIES += tests/results/shim.la
tests_results_shim_la_SOURCES = tests/results/shim.c
tests_results_shim_la_CPPFLAGS = -I$(top_srcdir) -D_GNU_SOURCE
tests_results_shim_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
