# agent/: libhpctrain and the hpc-train command.
hpctrain_HEADERS += include/hpctrain/hpctrain.h include/hpctrain/batch.h include/hpctrain/bench.h include/hpctrain/check.h include/hpctrain/checkpoint.h include/hpctrain/context.h \
	include/hpctrain/dataset.h include/hpctrain/info.h include/hpctrain/launch.h include/hpctrain/plan.h include/hpctrain/predict.h include/hpctrain/report.h include/hpctrain/strategy.h include/hpctrain/top.h include/hpctrain/train.h include/hpctrain/trainer.h

# Everything of the agent; the library below and the unit tests are linked with it.
noinst_LTLIBRARIES += agent/libagent.la
agent_libagent_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS) $(LIBCRYPTO_CFLAGS) $(PMIX_CFLAGS) $(ZLIB_CFLAGS) $(LIBDEFLATE_CFLAGS) $(LIBARCHIVE_CFLAGS) $(LIBJPEG_CFLAGS) $(LIBPNG_CFLAGS)
agent_libagent_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
agent_libagent_la_LIBADD = base/auth/libauth.la base/net/libnet.la agent/comm/libcommmpi.la $(OPENMP_CFLAGS) $(JANSSON_LIBS) $(ZLIB_LIBS) $(LIBDEFLATE_LIBS) $(LIBARCHIVE_LIBS) $(LIBJPEG_LIBS) $(LIBPNG_LIBS)
agent_libagent_la_SOURCES = \
	agent/checkpoint/checkpoint.c agent/checkpoint/checkpoint.h \
	agent/checkpoint/contents.c agent/checkpoint/contents.h \
	agent/checkpoint/disk.c agent/checkpoint/disk.h \
	agent/checkpoint/export.c \
	agent/checkpoint/holder.c agent/checkpoint/holder.h \
	agent/checkpoint/load.c \
	agent/checkpoint/lock.c agent/checkpoint/lock.h \
	agent/checkpoint/manifest.c agent/checkpoint/manifest.h \
	agent/checkpoint/part.c agent/checkpoint/part.h \
	agent/checkpoint/prune.c agent/checkpoint/prune.h \
	agent/checkpoint/report.c \
	agent/checkpoint/store.c agent/checkpoint/store.h \
	agent/checkpoint/tensors.c agent/checkpoint/tensors.h \
	agent/comm/agree.c agent/comm/agree.h \
	agent/comm/circulant.c agent/comm/circulant.h \
	agent/comm/comm.h agent/comm/self.c \
	agent/comm/deadline.c agent/comm/deadline.h \
	agent/comm/device.c agent/comm/device.h \
	agent/comm/exchange.c agent/comm/exchange.h \
	agent/comm/fabric.c agent/comm/fabric.h \
	agent/comm/gone.c agent/comm/gone.h \
	agent/comm/grid.c agent/comm/grid.h \
	agent/comm/mail.c agent/comm/mail.h \
	agent/comm/nccl.c agent/comm/nccl.h \
	agent/comm/nccl_channel.c agent/comm/nccl_comm.h \
	agent/comm/nccl_job.c agent/comm/nccl_reduction.c agent/comm/nccl_stream.c \
	agent/comm/network.c agent/comm/network.h \
	agent/comm/peers.c agent/comm/peers.h \
	agent/comm/pmix_key.c agent/comm/pmix_key.h \
	agent/comm/reduction.c agent/comm/reduction.h \
	agent/comm/rendezvous.c agent/comm/rendezvous.h \
	agent/comm/staged.c agent/comm/staged.h \
	agent/comm/tcp.c agent/comm/tcp_comm.h agent/comm/tcp_stream.c \
	agent/comm/watch.c agent/comm/watch.h \
	agent/comm/watch_gain.c agent/comm/watch_join.c agent/comm/watch_state.h \
	agent/comm/wire.c agent/comm/wire.h agent/comm/wire_body.h \
	agent/cost/batch.c agent/cost/batch.h \
	agent/cost/candidates.c agent/cost/candidates.h \
	agent/cost/check.c \
	agent/cost/choose.c agent/cost/choose.h \
	agent/cost/compute.c agent/cost/compute.h \
	agent/cost/contest.c agent/cost/contest.h \
	agent/cost/emulate.c agent/cost/emulate.h \
	agent/cost/forecast.c agent/cost/forecast.h \
	agent/cost/made_up.c agent/cost/made_up.h \
	agent/cost/nodes.c agent/cost/nodes.h \
	agent/cost/nodes_report.c agent/cost/nodes_report.h \
	agent/cost/pairs.c agent/cost/pairs.h \
	agent/cost/payoff.c agent/cost/payoff.h \
	agent/cost/plan.c agent/cost/plan_parse.c \
	agent/cost/predict.c agent/cost/predict.h \
	agent/cost/profile.c agent/cost/profile.h \
	agent/cost/scratch.c agent/cost/scratch.h \
	agent/cost/sum_network.c agent/cost/sum_network.h \
	agent/cost/trial.c agent/cost/trial.h \
	agent/data/affine.c agent/data/affine.h agent/data/affine_body.h \
	agent/data/archive.c agent/data/archive.h \
	agent/data/augment.c agent/data/augment.h \
	agent/data/canvas.h \
	agent/data/cifar.c agent/data/cifar.h agent/data/cifar_files.c agent/data/cifar_pickle.c \
	agent/data/colour.c agent/data/colour.h \
	agent/data/csv.c agent/data/csv.h \
	agent/data/dataset.c agent/data/dataset.h \
	agent/data/describe.c \
	agent/data/draws.c agent/data/draws.h \
	agent/data/encoded.c agent/data/encoded.h \
	agent/data/entries.h \
	agent/data/fingerprint.c agent/data/fingerprint.h \
	agent/data/folder.c agent/data/folder.h \
	agent/data/grow.c agent/data/grow.h \
	agent/data/foreign.c agent/data/foreign.h \
	agent/data/gunzip.c agent/data/gunzip.h \
	agent/data/hold_out.c \
	agent/data/idx.c agent/data/idx.h \
	agent/data/jpeg.c \
	agent/data/labels.c agent/data/labels.h \
	agent/data/levels.c agent/data/levels.h \
	agent/data/listing.c agent/data/listing.h \
	agent/data/mix.c agent/data/mix.h \
	agent/data/notes.c agent/data/notes.h \
	agent/data/npy.c agent/data/npy.h \
	agent/data/npz.c agent/data/npz.h \
	agent/data/pickle.c agent/data/pickle.h \
	agent/data/picture.c agent/data/picture.h \
	agent/data/pipeline.c agent/data/pipeline.h \
	agent/data/png.c \
	agent/data/prepare.c agent/data/prepare.h \
	agent/data/rand_augment.c agent/data/rand_augment.h \
	agent/data/resize.c agent/data/resize.h agent/data/resize_body.h \
	agent/data/sampler.c agent/data/sampler.h \
	agent/data/shards.c \
	agent/data/split_name.c agent/data/split_name.h \
	agent/data/synthetic.c \
	agent/data/tar.c agent/data/tar.h \
	agent/data/unlabelled.c agent/data/unlabelled.h \
	agent/export/keras_archive.c \
	agent/fit/fit.c agent/fit/fit.h agent/fit/train_and_evaluate.c \
	agent/launch/command.c agent/launch/command.h \
	agent/launch/launch.c \
	agent/launch/nodes.c agent/launch/nodes.h \
	agent/launch/srun.c agent/launch/srun.h \
	agent/launch/srun_line.c agent/launch/srun_line.h \
	agent/launch/step_facts.c agent/launch/step_facts.h \
	agent/launch/variables.c agent/launch/variables.h \
	agent/predict/predict.c \
	agent/predict/rows.c agent/predict/rows.h \
	agent/predict/scores.c agent/predict/scores.h \
	agent/predict/workers.c agent/predict/workers.h \
	agent/ps/channel.c agent/ps/channel.h \
	agent/ps/connect.c agent/ps/connect.h \
	agent/ps/fit.c agent/ps/fit.h \
	agent/ps/holder.c agent/ps/holder.h \
	agent/ps/leader.c agent/ps/leader.h \
	agent/ps/pace.c agent/ps/pace.h \
	agent/ps/message.c agent/ps/message.h \
	agent/ps/partition.c agent/ps/partition.h \
	agent/ps/run.c agent/ps/run.h \
	agent/ps/saving.c agent/ps/saving.h \
	agent/ps/schedule.c agent/ps/schedule.h \
	agent/ps/server.c \
	agent/ps/worker.c \
	agent/rank/compare.c agent/rank/compare.h \
	agent/rank/context.c agent/rank/context.h agent/rank/context_join.c agent/rank/context_state.h \
	agent/rank/job_end.c agent/rank/job_end.h \
	agent/rank/device.c \
	agent/rank/device_calls.c agent/rank/device_calls.h \
	agent/rank/largest.c agent/rank/largest.h \
	agent/rank/memory.c agent/rank/memory.h \
	agent/rank/node_state.c agent/rank/node_state.h \
	agent/rank/node_text.c agent/rank/node_text.h \
	agent/rank/squeue.c agent/rank/squeue.h \
	agent/rank/stop.c agent/rank/stop.h \
	agent/rank/threads.c agent/rank/threads.h \
	agent/rank/timeline.c agent/rank/timeline.h \
	agent/report/axis.c agent/report/axis.h \
	agent/report/bars.c agent/report/beside.c agent/report/chart.c agent/report/chart.h \
	agent/report/content.h agent/report/curves.c agent/report/html.c agent/report/lines.c \
	agent/report/md.c agent/report/one.c \
	agent/report/page.c agent/report/page.h \
	agent/report/plan.c agent/report/points.c \
	agent/report/ranks.c \
	agent/report/read_history.c agent/report/read_json.c agent/report/read_json.h agent/report/read_lines.c \
	agent/report/readers.c agent/report/readers.h \
	agent/report/report.c \
	agent/report/run.c agent/report/run.h \
	agent/report/several.c agent/report/starts.c agent/report/style.c agent/report/svg.c \
	agent/report/text.c agent/report/text.h \
	agent/results/board.c agent/results/board.h \
	agent/results/event_files.c agent/results/event_files.h \
	agent/results/events.c agent/results/events.h \
	agent/results/histogram.c agent/results/histogram.h \
	agent/results/history.c agent/results/history.h \
	agent/results/json_file.c agent/results/json_file.h \
	agent/results/live.c agent/results/live.h agent/results/live_losses.h \
	agent/results/live_report.c agent/results/live_report.h \
	agent/results/metric.c agent/results/metric.h \
	agent/results/metrics_file.c agent/results/metrics_file.h \
	agent/results/log_file.c agent/results/log_file.h \
	agent/results/progress.c agent/results/progress.h \
	agent/results/results.c agent/results/results.h \
	agent/results/run_file.c agent/results/run_file.h \
	agent/results/status_file.c agent/results/status_file.h \
	agent/results/summary.c agent/results/summary.h \
	agent/results/tally.c agent/results/tally.h agent/results/tally_text.c \
	agent/results/written.c \
	agent/strategy/alike.c agent/strategy/alike.h \
	agent/strategy/gradients/buckets.c agent/strategy/gradients/buckets.h \
	agent/strategy/gradients/compress.c agent/strategy/gradients/compress.h \
	agent/strategy/gradients/low_rank.c agent/strategy/gradients/low_rank.h agent/strategy/gradients/low_rank_body.h \
	agent/strategy/gradients/powersgd.c \
	agent/strategy/gradients/select.c agent/strategy/gradients/select.h \
	agent/strategy/gradients/top_k.c \
	agent/strategy/hybrid.c \
	agent/strategy/local_sgd.c \
	agent/strategy/multi_worker_mirrored.c \
	agent/strategy/pipeline.c \
	agent/strategy/replica.c agent/strategy/replica.h \
	agent/strategy/parameter_server.c \
	agent/strategy/state.c agent/strategy/state.h \
	agent/strategies/strategies.c agent/strategies/strategies.h \
	agent/strategy/replicas/central_storage.c \
	agent/strategy/replicas/thread_pool.c agent/strategy/replicas/thread_pool.h \
	agent/strategy/replicas/mirrored.c \
	agent/strategy/replicas/mirrored_gpus.c agent/strategy/replicas/mirrored_gpus.h \
	agent/strategy/replicas/replica_set.c agent/strategy/replicas/replica_set.h \
	agent/strategy/stage_layout.c agent/strategy/stage_layout.h \
	agent/strategy/strategy.c agent/strategy/strategy.h \
	agent/top/find.c agent/top/find.h \
	agent/top/screen.c agent/top/screen.h \
	agent/top/terminal.c agent/top/terminal.h \
	agent/top/top.c \
	agent/train/bench.c \
	agent/train/checkpoint_weights.c \
	agent/train/checkpoints.c agent/train/checkpoints.h \
	agent/train/class_weights.c agent/train/class_weights.h \
	agent/train/control.c agent/train/control.h \
	agent/train/deadline.c \
	agent/train/evaluate.c agent/train/evaluate.h \
	agent/train/batch_source.c agent/train/batch_source.h \
	agent/train/fit.c agent/train/fit.h \
	agent/train/fit_check.c agent/train/fit_nan.c agent/train/fit_run.h agent/train/fit_saving.c \
	agent/train/info.c \
	agent/train/kept_weights.c agent/train/kept_weights.h \
	agent/train/means.c agent/train/means.h \
	agent/train/monitor.c agent/train/monitor.h \
	agent/train/observe_best.c agent/train/observe_board.c \
	agent/train/observe_end.c agent/train/observe_history.c agent/train/observe_live.c \
	agent/train/observe_progress.c agent/train/observe_run_file.c \
	agent/train/observer.h agent/train/observers.c \
	agent/train/pace.c \
	agent/train/pace_file.c agent/train/pace_file.h \
	agent/train/describe.c \
	agent/train/identity.c agent/train/identity.h \
	agent/train/trained_with.c agent/train/trained_with.h \
	agent/train/place.c agent/train/place.h \
	agent/train/rate_file.c agent/train/rate_file.h \
	agent/train/run_state.c agent/train/run_state.h \
	agent/train/trainer.c agent/train/training.c \
	agent/train/training.h \
	agent/train/slow.c agent/train/slow.h \
	agent/train/slow_nodes.c agent/train/slow_nodes.h \
	agent/train/targets.c agent/train/targets.h \
	agent/train/watch.c agent/train/watch.h agent/train/watch_text.c \
	agent/train/writer.c agent/train/writer.h

# Apart, because only this part is compiled with MPI's flags.
noinst_LTLIBRARIES += agent/comm/libcommmpi.la
agent_comm_libcommmpi_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(MPI_CFLAGS)
agent_comm_libcommmpi_la_LIBADD = $(MPI_LIBS)
agent_comm_libcommmpi_la_SOURCES = agent/comm/mpi.c agent/comm/mpi_comm.h \
	agent/comm/mpi_carrier.c agent/comm/mpi_mail.c agent/comm/mpi_stream.c

# libnn carries base/libbase.la and base/libfile.la in it.
hpct_parts = agent/libagent.la base/cluster/libcluster.la nn/libnn.la

lib_LTLIBRARIES += libhpctrain.la
libhpctrain_la_SOURCES =
libhpctrain_la_LIBADD = $(hpct_parts)
libhpctrain_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined

bin_PROGRAMS += hpc-train
hpc_train_SOURCES = agent/cli/cli.h \
	agent/cli/batch.c agent/cli/bench.c agent/cli/check.c agent/cli/checkpoint.c agent/cli/common.c agent/cli/context.c agent/cli/data.c agent/cli/evaluate.c agent/cli/export.c agent/cli/fit.c agent/cli/info.c \
	agent/cli/input.c agent/cli/keep.c agent/cli/launch.c agent/cli/main.c agent/cli/model.c agent/cli/next.c agent/cli/options.c agent/cli/plan.c agent/cli/predict.c agent/cli/report.c agent/cli/summary.c agent/cli/top.c agent/cli/training.c \
	base/hint.c base/hint.h base/nearest.c base/nearest.h
hpc_train_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_CHECK='"$(sbindir)/hpc-train-check"'
hpc_train_LDADD = libhpctrain.la
