# Fuzz targets: one file per parser with libFuzzer's entry point. `make check` replays each one's
# corpus and some thousand mutations of it; with --enable-fuzzing they are libFuzzer programs.
if FUZZING
fuzz_driver =
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_driver = tests/fuzz/driver.c
fuzz_ldflags = $(AM_LDFLAGS)
endif
EXTRA_DIST += tests/fuzz/driver.c tests/fuzz/corpus
fuzz_libs = base/cluster/libcluster.la base/libbase.la

fuzz_targets += tests/fuzz/fuzz_nodelist tests/fuzz/fuzz_tasks tests/fuzz/fuzz_config
tests_fuzz_fuzz_nodelist_SOURCES = tests/fuzz/fuzz_nodelist.c $(fuzz_driver)
tests_fuzz_fuzz_nodelist_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_nodelist_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_tasks_SOURCES = tests/fuzz/fuzz_tasks.c $(fuzz_driver)
tests_fuzz_fuzz_tasks_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tasks_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(fuzz_driver)
tests_fuzz_fuzz_config_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_config_LDADD = $(fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_cluster
tests_fuzz_fuzz_cluster_SOURCES = tests/fuzz/fuzz_cluster.c $(fuzz_driver)
tests_fuzz_fuzz_cluster_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_cluster_LDADD = $(fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_options
tests_fuzz_fuzz_options_SOURCES = tests/fuzz/fuzz_options.c $(fuzz_driver)
tests_fuzz_fuzz_options_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_options_LDADD = spank/libspank.la $(fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_settings
tests_fuzz_fuzz_settings_SOURCES = tests/fuzz/fuzz_settings.c $(fuzz_driver)
tests_fuzz_fuzz_settings_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_settings_LDADD = spank/libspank.la $(fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_safetensors
tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/fuzz_safetensors.c $(fuzz_driver)
tests_fuzz_fuzz_safetensors_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_safetensors_LDADD = nn/libnn.la

fuzz_targets += tests/fuzz/fuzz_torchvision
tests_fuzz_fuzz_torchvision_SOURCES = tests/fuzz/fuzz_torchvision.c $(fuzz_driver)
tests_fuzz_fuzz_torchvision_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_torchvision_LDADD = nn/libnn.la

fuzz_targets += tests/fuzz/fuzz_broadcast
tests_fuzz_fuzz_broadcast_SOURCES = tests/fuzz/fuzz_broadcast.c $(fuzz_driver)
tests_fuzz_fuzz_broadcast_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_broadcast_LDADD = spank/stage/libstage.la $(fuzz_libs)

fuzz_targets += tests/fuzz/fuzz_kind
tests_fuzz_fuzz_kind_SOURCES = tests/fuzz/fuzz_kind.c $(fuzz_driver)
tests_fuzz_fuzz_kind_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_kind_LDADD = nn/libnn.la

fuzz_targets += tests/fuzz/fuzz_keras_json
tests_fuzz_fuzz_keras_json_SOURCES = tests/fuzz/fuzz_keras_json.c $(fuzz_driver)
tests_fuzz_fuzz_keras_json_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_keras_json_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_keras_json_LDADD = nn/libnn.la

if HAVE_HDF5
fuzz_targets += tests/fuzz/fuzz_weights_h5
tests_fuzz_fuzz_weights_h5_SOURCES = tests/fuzz/fuzz_weights_h5.c $(fuzz_driver)
tests_fuzz_fuzz_weights_h5_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_fuzz_fuzz_weights_h5_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_weights_h5_LDADD = nn/libnn.la
endif
