# spank/: the SPANK plugin, thin, and the helper that it starts as the user. Only slurm_api.c,
# slurm_release.c and plugin.c include Slurm's headers; the rest is libspank.la, tested without Slurm.
bin_PROGRAMS += hpc-train-stage
noinst_LTLIBRARIES += spank/libspank.la spank/libagree.la spank/stage/libstage.la
spank_LTLIBRARIES += spank/spank_hpc_train.la

spank_stage_libstage_la_CPPFLAGS = $(AM_CPPFLAGS) $(XXHASH_CFLAGS) $(LIBARCHIVE_CFLAGS) \
	$(ZLIB_CFLAGS) $(MUNGE_CFLAGS)
spank_stage_libstage_la_LIBADD = base/auth/libauth.la $(XXHASH_LIBS) $(LIBARCHIVE_LIBS) $(ZLIB_LIBS) $(MUNGE_LIBS)
spank_stage_libstage_la_SOURCES = \
	spank/stage/arena.c spank/stage/arena.h \
	spank/stage/broadcast.c spank/stage/broadcast.h spank/stage/broadcast_state.h \
	spank/stage/broadcast_auth.c spank/stage/broadcast_auth.h \
	spank/stage/broadcast_join.c \
	spank/stage/broadcast_link.c spank/stage/broadcast_link.h \
	spank/stage/broadcast_loop.c \
	spank/stage/broadcast_send.c spank/stage/broadcast_send.h \
	spank/stage/broadcast_take.c spank/stage/broadcast_take.h \
	spank/stage/broadcast_team.c spank/stage/broadcast_team.h \
	spank/stage/broadcast_tree.c spank/stage/broadcast_tree.h \
	spank/stage/broadcast_wire.c spank/stage/broadcast_wire.h \
	spank/stage/bytes.c spank/stage/bytes.h \
	spank/stage/content.c spank/stage/content.h \
	spank/stage/copy.c spank/stage/copy.h \
	spank/stage/crew.c spank/stage/crew.h \
	spank/stage/entry.c spank/stage/entry.h \
	spank/stage/extract.c spank/stage/extract.h \
	spank/stage/out.c spank/stage/out.h \
	spank/stage/out_entry.c spank/stage/out_entry.h \
	spank/stage/out_links.c spank/stage/out_links.h \
	spank/stage/out_main.c \
	spank/stage/out_record.c spank/stage/out_record.h \
	spank/stage/out_tree.c spank/stage/out_tree.h \
	spank/stage/folders.c spank/stage/folders.h \
	spank/stage/hash.c spank/stage/hash.h \
	spank/stage/inodes.c spank/stage/inodes.h \
	spank/stage/item.c spank/stage/item.h \
	spank/stage/manifest.c spank/stage/manifest.h \
	spank/stage/mode.c spank/stage/mode.h \
	spank/stage/names.c spank/stage/names.h \
	spank/stage/origin.c spank/stage/origin.h \
	spank/stage/pace.c spank/stage/pace.h \
	spank/stage/pack.c spank/stage/pack.h \
	spank/stage/place.c spank/stage/place.h spank/stage/place_state.h \
	spank/stage/place_together.c \
	spank/stage/refuse.c spank/stage/refuse.h \
	spank/stage/report.c spank/stage/report.h \
	spank/stage/room.c spank/stage/room.h \
	spank/stage/sink.c \
	spank/stage/taker.c spank/stage/taker.h \
	spank/stage/together.c spank/stage/together.h \
	spank/stage/tree.c spank/stage/tree.h \
	spank/stage/unpack.c spank/stage/unpack.h \
	spank/stage/walk.c spank/stage/walk.h \
	spank/stage/writer.c spank/stage/writer.h spank/stage/writer_state.h
hpc_train_stage_SOURCES = spank/stage/main.c
hpc_train_stage_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_VERSION='"$(PACKAGE_VERSION)"'
hpc_train_stage_LDADD = spank/stage/libstage.la spank/libagree.la agent/cluster/libcluster.la base/libbase.la

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
hpc_train_gpus_LDADD = spank/gpu/libgpu.la agent/cluster/libcluster.la base/libbase.la

spank_libspank_la_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_DEFAULT_HELPER='"$(bindir)/hpc-train-stage"' \
	-DHPCT_DEFAULT_GPU_HELPER='"$(pkglibexecdir)/hpc-train-gpus"'
spank_libspank_la_SOURCES = \
	spank/arguments.c spank/arguments.h \
	spank/cgroup.c spank/cgroup.h \
	spank/child.c spank/child.h \
	spank/describe.c spank/describe.h \
	spank/errand.c spank/errand.h \
	spank/folder.c spank/folder.h \
	spank/forked.c spank/forked.h \
	spank/given.c spank/given.h \
	spank/gpu.c spank/gpu.h \
	spank/gpu_ask.c spank/gpu_ask.h \
	spank/gpu_closest.c spank/gpu_closest.h \
	spank/gpu_meet.c spank/gpu_meet.h \
	spank/options.c spank/options.h \
	spank/marker.c spank/marker.h \
	spank/nodes_asked.c spank/nodes_asked.h \
	spank/orphans.c spank/orphans.h \
	spank/parent.c spank/parent.h \
	spank/ports_check.c spank/ports_check.h \
	spank/ports_holder.c spank/ports_holder.h \
	spank/remove.c spank/remove.h \
	spank/settings.c spank/settings.h \
	spank/share.c spank/share.h \
	spank/slurm_symbols.c spank/slurm_symbols.h \
	spank/stage_out.c spank/stage_out.h \
	spank/stage_run.c spank/stage_run.h \
	spank/tmpdir.c spank/tmpdir.h \
	spank/turn.c spank/turn.h \
	spank/stage/bytes.c spank/stage/bytes.h \
	spank/stage/entry.c spank/stage/entry.h \
	spank/stage/mode.c spank/stage/mode.h \
	spank/stage/out_entry.c spank/stage/out_entry.h \
	spank/stage/out_record.c spank/stage/out_record.h

# How nodes agree on ports: the plugin's part that proves the step's key, and so needs libcrypto.
spank_libagree_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
spank_libagree_la_LIBADD = base/auth/libauth.la
spank_libagree_la_SOURCES = \
	agent/comm/acceptor.c agent/comm/frame.c agent/comm/link.c agent/comm/session.c \
	spank/ports_agree.c spank/ports_agree.h \
	spank/results.c spank/results.h

# Tells an administrator what is wrong on a node; `hpc-train info --admin` starts it.
sbin_PROGRAMS += hpc-train-check
hpc_train_check_SOURCES = spank/check/main.c \
	spank/check/elf.c spank/check/elf.h \
	spank/check/plugstack.c spank/check/plugstack.h \
	spank/check/slurm.c spank/check/slurm.h
hpc_train_check_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
hpc_train_check_LDADD = spank/libspank.la agent/cluster/libcluster.la base/libbase.la

EXTRA_DIST += spank/spank_hpc_train.map
spank_spank_hpc_train_la_CPPFLAGS = $(AM_CPPFLAGS) $(SLURM_CPPFLAGS)
spank_spank_hpc_train_la_SOURCES = spank/plugin.c spank/contexts.h \
	spank/client.c spank/client_results.c spank/daemon.c spank/job.c spank/ports_choose.c spank/task_end.c spank/tell.c spank/tell.h spank/task_out.c spank/slurm_api.c spank/slurm_api.h spank/slurm_release.c spank/slurm_release.h spank/step.c spank/step_key.c spank/step_key.h spank/task.c
spank_spank_hpc_train_la_LIBADD = spank/libspank.la spank/libagree.la agent/cluster/libcluster.la base/libbase.la
spank_spank_hpc_train_la_DEPENDENCIES = $(spank_spank_hpc_train_la_LIBADD) \
	spank/spank_hpc_train.map
spank_spank_hpc_train_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-Wl,--version-script=$(top_srcdir)/spank/spank_hpc_train.map
