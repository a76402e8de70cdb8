# spank/: the SPANK plugin, thin, and the helper that it starts as the user. Only slurm_api.c,
# slurm_release.c and plugin.c include Slurm's headers; the rest is libspank.la, tested without Slurm.
bin_PROGRAMS += hpc-train-stage
noinst_LTLIBRARIES += spank/libspank.la spank/libagree.la spank/spec/libspec.la spank/stage/libstage.la
spank_LTLIBRARIES += spank/spank_hpc_train.la

# The grammar of option values, for plugin and helper.
spank_spec_libspec_la_SOURCES = \
	spank/spec/bytes.c spank/spec/bytes.h \
	spank/spec/entry.c spank/spec/entry.h \
	spank/spec/network.c spank/spec/network.h \
	spank/spec/out_entry.c spank/spec/out_entry.h \
	spank/spec/out_record.c spank/spec/out_record.h \
	spank/spec/stage_plan.c spank/spec/stage_plan.h

spank_stage_libstage_la_CPPFLAGS = $(AM_CPPFLAGS) $(XXHASH_CFLAGS) $(LIBARCHIVE_CFLAGS) \
	$(ZLIB_CFLAGS) $(MUNGE_CFLAGS)
spank_stage_libstage_la_LIBADD = spank/spec/libspec.la base/auth/libauth.la base/net/libnet.la $(XXHASH_LIBS) $(LIBARCHIVE_LIBS) $(ZLIB_LIBS) $(MUNGE_LIBS)
spank_stage_libstage_la_SOURCES = \
	spank/stage/net/broadcast.c spank/stage/net/broadcast.h spank/stage/net/broadcast_state.h \
	spank/stage/net/broadcast_auth.c spank/stage/net/broadcast_auth.h \
	spank/stage/net/broadcast_join.c \
	spank/stage/net/broadcast_link.c spank/stage/net/broadcast_link.h \
	spank/stage/net/broadcast_loop.c \
	spank/stage/net/reader.c spank/stage/net/reader.h \
	spank/stage/net/unpacker.c spank/stage/net/unpacker.h \
	spank/stage/net/broadcast_team.c spank/stage/net/broadcast_team.h \
	spank/stage/net/pack.c spank/stage/net/pack.h \
	spank/stage/out/out.c spank/stage/out/out.h \
	spank/stage/out/out_ours.c spank/stage/out/out_ours.h \
	spank/stage/out/out_put.c spank/stage/out/out_put.h \
	spank/stage/out/out_tree.c spank/stage/out/out_tree.h \
	spank/stage/out_main.c spank/stage/out_main.h \
	spank/stage/destination.c spank/stage/destination.h \
	spank/stage/options.c spank/stage/options.h \
	spank/stage/protocol.c spank/stage/protocol.h \
	spank/stage/tree/arena.c spank/stage/tree/arena.h \
	spank/stage/tree/content.c spank/stage/tree/content.h \
	spank/stage/tree/copy.c spank/stage/tree/copy.h \
	spank/stage/tree/thread_pool.c spank/stage/tree/thread_pool.h \
	spank/stage/tree/extract.c spank/stage/tree/extract.h \
	spank/stage/tree/folders.c spank/stage/tree/folders.h \
	spank/stage/tree/hash.c spank/stage/tree/hash.h \
	spank/stage/tree/inodes.c spank/stage/tree/inodes.h \
	spank/stage/tree/item.h \
	spank/stage/tree/manifest.c spank/stage/tree/manifest.h \
	spank/stage/tree/identity.c spank/stage/tree/identity.h \
	spank/stage/tree/report.c spank/stage/tree/report.h \
	spank/stage/tree/sink.c \
	spank/stage/tree/unpack.c spank/stage/tree/unpack.h \
	spank/stage/tree/walk.c spank/stage/tree/walk.h \
	spank/stage/tree/writer.c spank/stage/tree/writer.h spank/stage/tree/writer_state.h
hpc_train_stage_SOURCES = spank/stage/main.c
hpc_train_stage_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_VERSION='"$(PACKAGE_VERSION)"'
hpc_train_stage_LDADD = spank/stage/libstage.la spank/libagree.la spank/spec/libspec.la base/cluster/libcluster.la base/libfile.la base/libbase.la

# Which GPU is whose: a helper, so that hwloc and NVML are loaded there and nowhere else.
pkglibexec_PROGRAMS += hpc-train-gpus
noinst_LTLIBRARIES += spank/gpu/libgpu.la
spank_gpu_libgpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS)
spank_gpu_libgpu_la_SOURCES = \
	spank/gpu/assign.c spank/gpu/assign.h \
	spank/gpu/closest.c spank/gpu/closest.h \
	spank/gpu/gres.c spank/gpu/gres.h \
	spank/gpu/nvml.c spank/gpu/nvml.h \
	spank/gpu/request.c spank/gpu/request.h \
	spank/gpu/topology.c spank/gpu/topology.h
hpc_train_gpus_SOURCES = spank/gpu/main.c
hpc_train_gpus_LDADD = spank/gpu/libgpu.la base/cluster/libcluster.la base/libbase.la

spank_libspank_la_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_DEFAULT_HELPER='"$(bindir)/hpc-train-stage"' \
	-DHPCT_DEFAULT_GPU_HELPER='"$(pkglibexecdir)/hpc-train-gpus"'
spank_libspank_la_LIBADD = spank/spec/libspec.la
spank_libspank_la_SOURCES = \
	spank/arguments.c spank/arguments.h \
	spank/cgroup.c spank/cgroup.h \
	spank/child.c spank/child.h \
	spank/describe.c spank/describe.h \
	spank/timed_child.c spank/timed_child.h \
	spank/folder.c spank/folder.h \
	spank/forked.c spank/forked.h \
	spank/given.c spank/given.h \
	spank/gpu.c spank/gpu.h \
	spank/gpu_ask.c spank/gpu_ask.h \
	spank/gpu_closest.c spank/gpu_closest.h \
	spank/gpu_meet.c spank/gpu_meet.h \
	spank/marker.c spank/marker.h \
	spank/nodes_asked.c spank/nodes_asked.h \
	spank/options.c spank/options.h \
	spank/orphans.c spank/orphans.h \
	spank/parent.c spank/parent.h \
	spank/ports_check.c spank/ports_check.h \
	spank/ports_holder.c spank/ports_holder.h \
	spank/ports_keeper.c spank/ports_keeper.h \
	spank/remove.c spank/remove.h \
	spank/script_lines.c spank/script_lines.h \
	spank/network.c spank/network.h \
	spank/settings.c spank/settings.h \
	spank/share.c spank/share.h \
	spank/slurm_symbols.c spank/slurm_symbols.h \
	spank/stage_out.c spank/stage_out.h \
	spank/stage_run.c spank/stage_run.h \
	spank/tmpdir.c spank/tmpdir.h \
	spank/turn.c spank/turn.h

# How nodes agree on ports: the plugin's part that proves the step's key, and so needs libcrypto.
spank_libagree_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
spank_libagree_la_LIBADD = base/auth/libauth.la base/net/libnet.la
spank_libagree_la_SOURCES = \
	spank/agree/network.c spank/agree/network.h \
	spank/agree/network_frames.c spank/agree/network_frames.h \
	spank/agree/ports_agree.c spank/agree/ports_agree.h \
	spank/agree/results.c spank/agree/results.h

# Tells an administrator what is wrong on a node; `hpc-train info --admin` starts it.
sbin_PROGRAMS += hpc-train-check
hpc_train_check_SOURCES = spank/check/main.c \
	spank/check/elf.c spank/check/elf.h \
	spank/check/plugstack.c spank/check/plugstack.h \
	spank/check/slurm.c spank/check/slurm.h
hpc_train_check_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
hpc_train_check_LDADD = spank/libspank.la base/cluster/libcluster.la base/libbase.la

EXTRA_DIST += spank/spank_hpc_train.map
spank_spank_hpc_train_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS) -DHPCT_ADMIN_COMMAND='"$(bindir)/hpc-train info --admin"'
spank_spank_hpc_train_la_SOURCES = spank/plugin.c spank/contexts.h \
	spank/client.c spank/client_ports.c spank/client_results.c spank/daemon.c spank/job.c spank/ports_choose.c spank/requeue.c spank/requeue.h spank/task_end.c spank/tell.c spank/tell.h spank/task_out.c spank/slurm_api.c spank/slurm_api.h spank/slurm_release.c spank/slurm_release.h spank/step.c spank/defaults.c spank/defaults.h spank/step_key.c spank/step_key.h spank/task.c
spank_spank_hpc_train_la_LIBADD = spank/libspank.la spank/libagree.la base/cluster/libcluster.la base/libbase.la
spank_spank_hpc_train_la_DEPENDENCIES = $(spank_spank_hpc_train_la_LIBADD) \
	spank/spank_hpc_train.map
# nodelete: a thread that waits for the name service may outlive what Slurm unloads (base/net/resolve.c).
spank_spank_hpc_train_la_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,nodelete -module -avoid-version -shared \
	-Wl,--version-script=$(top_srcdir)/spank/spank_hpc_train.map
