# tests/results/: what a run of fit leaves behind, whatever happens to it.
results_tests = tests/results/best.t tests/results/checkpoint_faults.t tests/results/checkpoints.t \
	tests/results/continues.t tests/results/control.t tests/results/cuts.t tests/results/export.t tests/results/faults.t tests/results/hints.t tests/results/labels.t tests/results/outputs.t tests/results/predict.t \
	tests/results/report.t tests/results/run_folder.t tests/results/validation_split.t
scaled_tests += tests/results/checkpoint_faults.t tests/results/cuts.t tests/results/faults.t
check_PROGRAMS += tests/results/called
tests_results_called_LDADD = libhpctrain.la
if HAVE_CMOCKA
check_PROGRAMS += tests/results/saver
endif
check_LTLIBRARIES += tests/results/shim.la tests/results/nan_once.la
tests_results_shim_la_LDFLAGS = $(test_module)
tests_results_nan_once_la_LDFLAGS = $(test_module)
