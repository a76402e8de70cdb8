# Fuzz targets: one file per parser with libFuzzer's entry point. `make check` replays each one's
# corpus and some thousand mutations of it; with --enable-fuzzing they are libFuzzer programs.
if FUZZING
tests/fuzz/fuzz_%: private AM_LDFLAGS += -fsanitize=fuzzer
else
check_LTLIBRARIES += tests/fuzz/libdriver.la
fuzz_driver = tests/fuzz/libdriver.la
endif
tests/fuzz/%: private test_helpers = # these have a `main`, too
tests_fuzz_libdriver_la_SOURCES = tests/fuzz/driver.c

fuzz_targets += tests/fuzz/fuzz_broadcast tests/fuzz/fuzz_cifar tests/fuzz/fuzz_class_weights tests/fuzz/fuzz_cluster \
	tests/fuzz/fuzz_config tests/fuzz/fuzz_frame tests/fuzz/fuzz_idx tests/fuzz/fuzz_keras_json tests/fuzz/fuzz_kind \
	tests/fuzz/fuzz_labels tests/fuzz/fuzz_listing tests/fuzz/fuzz_live_report tests/fuzz/fuzz_manifest \
	tests/fuzz/fuzz_network tests/fuzz/fuzz_node_text tests/fuzz/fuzz_nodelist tests/fuzz/fuzz_npy tests/fuzz/fuzz_npz tests/fuzz/fuzz_options \
	tests/fuzz/fuzz_part tests/fuzz/fuzz_pickle tests/fuzz/fuzz_picture tests/fuzz/fuzz_proof tests/fuzz/fuzz_ps_message \
	tests/fuzz/fuzz_rate_file tests/fuzz/fuzz_report tests/fuzz/fuzz_safetensors tests/fuzz/fuzz_settings \
	tests/fuzz/fuzz_slurm_text tests/fuzz/fuzz_tar tests/fuzz/fuzz_tasks tests/fuzz/fuzz_torchvision
if HAVE_HDF5
fuzz_targets += tests/fuzz/fuzz_weights_h5
endif
spank_fuzz_libs = $(fuzz_driver) spank/libspank.la spank/stage/libstage.la base/cluster/libcluster.la base/libbase.la
tests_fuzz_fuzz_broadcast_LDADD = $(spank_fuzz_libs)
tests_fuzz_fuzz_network_LDADD = $(fuzz_driver) spank/libagree.la spank/spec/libspec.la base/libbase.la
tests_fuzz_fuzz_options_LDADD = $(spank_fuzz_libs)
tests_fuzz_fuzz_settings_LDADD = $(spank_fuzz_libs)
