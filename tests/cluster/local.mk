# tests/cluster/: TAP scripts that use a real Slurm in the sandbox; each skips itself where none runs.
cluster_tests = \
	tests/cluster/plugin.t \
	tests/cluster/plugin_layout.t \
	tests/cluster/plugin_safety.t \
	tests/cluster/plugin_settings.t tests/cluster/plugin_stage.t \
	tests/cluster/quickstart.t \
	tests/cluster/sandbox.t \
	tests/cluster/train.t \
	tests/cluster/train_failures.t
TESTS += $(cluster_tests)
long_tests += tests/cluster/plugin_sanitizers.t
EXTRA_DIST += $(cluster_tests) tests/cluster/plugin_sanitizers.t tests/cluster/asan_options.c \
	tests/cluster/lib.sh tests/cluster/plugin_lib.sh tests/cluster/train_lib.sh
