# agent/: libhpctrain and the hpc-train command.
include agent/cluster/local.mk

hpctrain_HEADERS += include/hpctrain/hpctrain.h include/hpctrain/batch.h include/hpctrain/bench.h include/hpctrain/context.h \
	include/hpctrain/dataset.h include/hpctrain/info.h include/hpctrain/plan.h include/hpctrain/strategy.h include/hpctrain/train.h include/hpctrain/trainer.h

# Everything of the agent; the library below and the unit tests are linked with it.
noinst_LTLIBRARIES += agent/libagent.la
agent_libagent_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS) $(LIBCRYPTO_CFLAGS) $(PMIX_CFLAGS) $(ZLIB_CFLAGS) $(LIBDEFLATE_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LIBJPEG_CFLAGS) $(LIBPNG_CFLAGS)
agent_libagent_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
agent_libagent_la_LIBADD = base/auth/libauth.la agent/comm/libcommmpi.la $(OPENMP_CFLAGS) $(JANSSON_LIBS) $(ZLIB_LIBS) $(LIBDEFLATE_LIBS) $(LIBARCHIVE_LIBS) $(LIBJPEG_LIBS) $(LIBPNG_LIBS)
agent_libagent_la_SOURCES = \
	agent/batch.c agent/batch.h \
	agent/bench.c \
	agent/comm/acceptor.c agent/comm/acceptor.h \
	agent/comm/comm.h agent/comm/self.c \
	agent/comm/circulant.c agent/comm/circulant.h \
	agent/comm/deadline.c agent/comm/deadline.h \
	agent/comm/device.c agent/comm/device.h agent/comm/device_calls.h \
	agent/comm/exchange.c agent/comm/exchange.h \
	agent/comm/agree.c agent/comm/agree.h \
	agent/comm/fabric.c agent/comm/fabric.h \
	agent/comm/frame.c agent/comm/frame.h \
	agent/comm/gone.c agent/comm/gone.h \
	agent/comm/grid.c agent/comm/grid.h \
	agent/comm/link.c agent/comm/link.h \
	agent/comm/mail.c agent/comm/mail.h \
	agent/comm/nccl.c agent/comm/nccl.h \
	agent/comm/nccl_channel.c agent/comm/nccl_comm.h \
	agent/comm/nccl_job.c agent/comm/nccl_reduction.c agent/comm/nccl_stream.c \
	agent/comm/network.c agent/comm/network.h \
	agent/comm/peers.c agent/comm/peers.h \
	agent/comm/pmix_key.c agent/comm/pmix_key.h \
	agent/comm/reduction.c agent/comm/reduction.h \
	agent/comm/rendezvous.c agent/comm/rendezvous.h \
	agent/comm/session.c agent/comm/session.h \
	agent/comm/staged.c agent/comm/staged.h \
	agent/comm/tcp.c agent/comm/tcp_comm.h agent/comm/tcp_stream.c \
	agent/comm/watch.c agent/comm/watch.h \
	agent/comm/watch_gain.c agent/comm/watch_join.c agent/comm/watch_state.h \
	agent/compute.c agent/compute.h \
	agent/comm/wire.c agent/comm/wire.h agent/comm/wire_body.h \
	agent/context.c agent/context.h \
	agent/data/cifar.c agent/data/cifar.h agent/data/cifar_files.c agent/data/cifar_pickle.c \
	agent/data/dataset.c agent/data/dataset.h \
	agent/data/describe.c \
	agent/data/encoded.c agent/data/encoded.h \
	agent/data/folder.c agent/data/folder.h \
	agent/data/grow.c agent/data/grow.h \
	agent/data/gunzip.c agent/data/gunzip.h \
	agent/data/idx.c agent/data/idx.h \
	agent/data/jpeg.c \
	agent/data/levels.c agent/data/levels.h \
	agent/data/listing.c agent/data/listing.h \
	agent/data/notes.c agent/data/notes.h \
	agent/data/npy.c agent/data/npy.h \
	agent/data/npz.c agent/data/npz.h \
	agent/data/pickle.c agent/data/pickle.h \
	agent/data/picture.c agent/data/picture.h \
	agent/data/pipeline.c agent/data/pipeline.h \
	agent/data/png.c \
	agent/data/resize.c agent/data/resize.h agent/data/resize_body.h \
	agent/data/sampler.c agent/data/sampler.h \
	agent/data/split_name.c agent/data/split_name.h \
	agent/data/synthetic.c \
	agent/data/tar.c agent/data/tar.h \
	agent/device.c \
	agent/emulate.c agent/emulate.h \
	agent/evaluate.c agent/evaluate.h \
	agent/feed.c agent/feed.h \
	agent/fit.c agent/fit.h \
	agent/history.c agent/history.h \
	agent/info.c \
	agent/json_file.c agent/json_file.h \
	agent/largest.c agent/largest.h \
	agent/made_up.c agent/made_up.h \
	agent/memory.c agent/memory.h agent/memory_share.c \
	agent/payoff.c agent/payoff.h \
	agent/plan.c agent/plan_parse.c \
	agent/predict.c agent/predict.h \
	agent/process.c agent/process.h \
	agent/profile.c agent/profile.h \
	agent/progress.c agent/progress.h \
	agent/ps/channel.c agent/ps/channel.h \
	agent/ps/connect.c agent/ps/connect.h \
	agent/ps/holder.c agent/ps/holder.h \
	agent/ps/leader.c agent/ps/leader.h \
	agent/ps/message.c agent/ps/message.h \
	agent/ps/partition.c agent/ps/partition.h \
	agent/ps/pulse.c agent/ps/pulse.h \
	agent/ps/run.c agent/ps/run.h \
	agent/ps/schedule.c agent/ps/schedule.h \
	agent/ps/server.c agent/ps/server.h \
	agent/ps/worker.c agent/ps/worker.h \
	agent/results.c agent/results.h \
	agent/stop.c agent/stop.h \
	agent/strategy/alike.c agent/strategy/alike.h \
	agent/strategy/buckets.c agent/strategy/buckets.h \
	agent/strategy/candidates.c agent/strategy/candidates.h \
	agent/strategy/central_storage.c \
	agent/strategy/choose.c agent/strategy/choose.h \
	agent/strategy/compress.c agent/strategy/compress.h \
	agent/strategy/contest.c agent/strategy/contest.h \
	agent/strategy/crew.c agent/strategy/crew.h \
	agent/strategy/forecast.c agent/strategy/forecast.h \
	agent/strategy/hybrid.c \
	agent/strategy/local_sgd.c \
	agent/strategy/low_rank.c agent/strategy/low_rank.h agent/strategy/low_rank_body.h \
	agent/strategy/mirrored.c \
	agent/strategy/mirrored_apart.c agent/strategy/mirrored_apart.h \
	agent/strategy/multi_worker_mirrored.c \
	agent/strategy/parameter_server.c \
	agent/strategy/pipeline.c \
	agent/strategy/powersgd.c \
	agent/strategy/replica.c agent/strategy/replica.h \
	agent/strategy/replica_set.c agent/strategy/replica_set.h \
	agent/strategy/select.c agent/strategy/select.h \
	agent/strategy/stage_layout.c agent/strategy/stage_layout.h \
	agent/strategy/strategy.c agent/strategy/strategy.h \
	agent/strategy/top_k.c \
	agent/strategy/trial.c agent/strategy/trial.h \
	agent/sum_network.c agent/sum_network.h \
	agent/summary.c agent/summary.h \
	agent/threads.c agent/threads.h \
	agent/timeline.c agent/timeline.h \
	agent/train_and_evaluate.c agent/trainer.c

# Apart, because only this part is compiled with MPI's flags.
noinst_LTLIBRARIES += agent/comm/libcommmpi.la
agent_comm_libcommmpi_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(MPI_CFLAGS)
agent_comm_libcommmpi_la_LIBADD = $(MPI_LIBS)
agent_comm_libcommmpi_la_SOURCES = agent/comm/mpi.c agent/comm/mpi_comm.h \
	agent/comm/mpi_carrier.c agent/comm/mpi_mail.c agent/comm/mpi_stream.c

# libnn carries base/libbase.la in it.
hpct_parts = agent/libagent.la agent/cluster/libcluster.la nn/libnn.la

lib_LTLIBRARIES += libhpctrain.la
libhpctrain_la_SOURCES =
libhpctrain_la_LIBADD = $(hpct_parts)
libhpctrain_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined

bin_PROGRAMS += hpc-train
hpc_train_SOURCES = agent/cli/cli.h \
	agent/cli/batch.c agent/cli/bench.c agent/cli/common.c agent/cli/data.c agent/cli/evaluate.c agent/cli/fit.c agent/cli/info.c \
	agent/cli/input.c agent/cli/main.c agent/cli/model.c agent/cli/options.c agent/cli/plan.c agent/cli/strategy.c agent/cli/summary.c agent/cli/training.c \
	base/nearest.c base/nearest.h
hpc_train_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_CHECK='"$(sbindir)/hpc-train-check"'
hpc_train_LDADD = libhpctrain.la
