# tests/cluster/: TAP scripts that use a real Slurm in the sandbox; each skips itself where none runs. They mostly wait, so
# tests/local.mk starts others beside them: the slowest first, of which every third has a sandbox of its own, the rest in two groups.
slow_cluster_tests = \
	tests/cluster/launch.t tests/cluster/launch_variables.t \
	tests/cluster/requeue.t \
	tests/cluster/plugin_waits.t \
	tests/cluster/train_failures.t \
	tests/cluster/strangers.t \
	tests/cluster/plugin_unified.t \
	tests/cluster/train_tcp.t \
	tests/cluster/plugin_cgroup.t \
	tests/cluster/plugin_ports.t
early_cluster_tests = \
	tests/cluster/train.t \
	tests/cluster/plugin.t \
	tests/cluster/plugin_out.t \
	tests/cluster/plugin_safety.t \
	tests/cluster/plugin_broadcast.t \
	tests/cluster/plugin_jobs.t \
	tests/cluster/plugin_attacks.t \
	tests/cluster/plugin_missing.t \
	tests/cluster/plugin_scripts.t \
	tests/cluster/plugin_settings.t \
	tests/cluster/plugin_life.t \
	tests/cluster/sandbox.t \
	tests/cluster/plugin_stage.t
late_cluster_tests = \
	tests/cluster/plugin_layout.t \
	tests/cluster/plugin_options.t \
	tests/cluster/train_ps.t \
	tests/cluster/train_deadline.t \
	tests/cluster/plugin_slurm_conf.t \
	tests/cluster/plugin_network.t \
	tests/cluster/plugin_ways.t \
	tests/cluster/plugin_gpu.t \
	tests/cluster/admin.t \
	tests/cluster/plugin_configless.t \
	tests/cluster/broadcast_faults.t \
	tests/cluster/plugin_cloud.t \
	tests/cluster/plugin_namespace.t \
	tests/cluster/plugin_no_munge.t \
	tests/cluster/plugin_server.t \
	tests/cluster/quickstart.t
cluster_tests = $(slow_cluster_tests) $(early_cluster_tests) $(late_cluster_tests)
scaled_tests += tests/cluster/broadcast_faults.t tests/cluster/launch_variables.t tests/cluster/plugin_broadcast.t tests/cluster/plugin_missing.t tests/cluster/train.t
long_tests += tests/cluster/plugin_sanitizers.t
scaled_tests += tests/cluster/plugin_attacks.t tests/cluster/plugin_cgroup.t tests/cluster/plugin_layout.t \
	tests/cluster/plugin_life.t tests/cluster/plugin_unified.t

# What the plugin costs.
long_tests += tests/cluster/check.t tests/cluster/plugin_cost.t tests/cluster/runs_go_on.t tests/cluster/slow_node.t

# Who knocks in plugin_broadcast.t, and who comes in strangers.t and plugin_ports.t.
check_PROGRAMS += tests/stage/intruder tests/cluster/stranger
tests_stage_intruder_LDADD = spank/stage/libstage.la base/cluster/libcluster.la base/libbase.la

# What train_lib.sh loads makes a training last; plugin_gpu.t binds tasks with pin, plugin_unified.t loads unified into slurmd,
# plugin_waits.t loads slow_init before the plugin, admin.t puts old/ in its place, and plugin_attacks.t brings along a plugin of a
# user's own and a spy in the environment.
check_LTLIBRARIES += tests/cluster/slow_steps.la tests/cluster/pin.la tests/cluster/unified.la tests/cluster/slow_init.la \
	tests/cluster/old/spank_hpc_train.la tests/cluster/own/spank_hpc_train.la tests/cluster/spy.la
tests_cluster_slow_steps_la_LDFLAGS = $(test_module)
tests_cluster_pin_la_LDFLAGS = $(test_module)
tests_cluster_unified_la_LDFLAGS = $(test_module)
tests_cluster_slow_init_la_LDFLAGS = $(test_module)
tests_cluster_old_spank_hpc_train_la_LDFLAGS = $(test_module)
tests_cluster_own_spank_hpc_train_la_LDFLAGS = $(test_module)
tests_cluster_spy_la_LDFLAGS = $(test_module)
tests_cluster_old_spank_hpc_train_la_SOURCES = tests/cluster/old/plugin.c
tests_cluster_own_spank_hpc_train_la_SOURCES = tests/cluster/own/plugin.c
tests_cluster_own_spank_hpc_train_la_LIBADD = spank/libspank.la base/cluster/libcluster.la base/libbase.la
