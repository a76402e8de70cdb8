# Unit tests of agent/.
if HAVE_CMOCKA
unit_tests += tests/unit/base/auth/test_auth tests/unit/base/net/test_frame tests/unit/base/net/test_resolve tests/unit/agent/cost/test_batch \
	tests/unit/agent/cost/test_bench \
	tests/unit/agent/strategy/gradients/test_buckets tests/unit/agent/cost/test_choose \
	tests/unit/agent/strategy/gradients/test_compress tests/unit/agent/strategy/replicas/test_crew \
	tests/unit/agent/data/test_data tests/unit/agent/train/test_fit tests/unit/agent/train/test_identity tests/unit/agent/train/test_place tests/unit/agent/train/test_slow tests/unit/agent/train/test_watch tests/unit/agent/data/test_formats \
	tests/unit/agent/data/test_splits tests/unit/agent/data/test_archives \
	tests/unit/agent/data/test_augment tests/unit/agent/data/test_notes tests/unit/agent/data/test_input tests/gpu_without/libraries/test_nccl \
	tests/unit/agent/data/test_foreign tests/unit/agent/data/test_hold_out tests/unit/agent/data/test_labels \
	tests/gpu_without/libraries/test_nccl_agreement tests/unit/agent/cost/test_plan \
	tests/unit/agent/cost/test_nodes tests/unit/agent/rank/test_node_state \
	tests/unit/agent/cost/test_predict tests/unit/agent/predict/test_scores tests/unit/agent/ps/test_ps \
	tests/unit/agent/ps/test_ps_pace \
	tests/unit/agent/checkpoint/test_kills tests/unit/agent/checkpoint/test_lock \
	tests/unit/agent/checkpoint/test_manifest tests/unit/agent/checkpoint/test_store \
	tests/unit/agent/launch/test_launch tests/unit/base/test_ask \
	tests/unit/agent/strategy/replicas/test_replicas tests/unit/agent/results/test_events \
	tests/unit/agent/results/test_metric tests/unit/agent/results/test_results tests/unit/agent/results/test_tally \
	tests/unit/agent/results/test_live tests/unit/agent/top/test_top \
	tests/unit/agent/data/test_sampler tests/unit/agent/strategy/test_stage_layout tests/unit/agent/comm/test_wire
# The same training as so many ranks.
check_PROGRAMS += tests/unit/agent/train/fit_ranks tests/unit/agent/strategy/norm_ranks \
	tests/unit/agent/comm/reduce_ranks
rank_tests += tests/unit/agent/train/fit_ranks.t tests/unit/agent/cost/batch.t \
	tests/unit/agent/strategy/norm_ranks.t tests/unit/agent/comm/reduce_ranks.t
endif
agent_test_libs = $(hpct_parts) $(CMOCKA_LIBS)
agent_test_cppflags = $(test_cppflags) -D_GNU_SOURCE
pictures = tests/unit/agent/data/pictures.c tests/unit/agent/data/pictures.h

# What the memory has to offer is told by the test.
tests_unit_base_auth_test_auth_SOURCES = tests/unit/base/auth/test_auth.c tests/unit/unit.h
tests_unit_base_auth_test_auth_CPPFLAGS = $(agent_test_cppflags)
tests_unit_base_auth_test_auth_LDADD = $(agent_test_libs)
tests_unit_agent_predict_test_scores_SOURCES = tests/unit/agent/predict/test_scores.c tests/unit/unit.h
tests_unit_agent_predict_test_scores_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_predict_test_scores_LDADD = $(agent_test_libs) -lm
tests_unit_agent_cost_test_batch_SOURCES = tests/unit/agent/cost/test_batch.c $(pictures) tests/unit/unit.h
tests_unit_agent_cost_test_batch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_cost_test_batch_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_memory_share_now
tests_unit_agent_cost_test_batch_LDADD = $(agent_test_libs)
tests_unit_agent_cost_test_bench_SOURCES = tests/unit/agent/cost/test_bench.c tests/unit/unit.h
tests_unit_agent_cost_test_bench_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_cost_test_bench_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_run_clock
tests_unit_agent_cost_test_bench_LDADD = $(agent_test_libs)
tests_unit_agent_strategy_gradients_test_buckets_SOURCES = tests/unit/agent/strategy/gradients/test_buckets.c \
	tests/unit/unit.h
tests_unit_agent_strategy_gradients_test_buckets_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_gradients_test_buckets_LDADD = $(agent_test_libs)
checkpoint_folder = tests/unit/agent/checkpoint/folder.c tests/unit/agent/checkpoint/folder.h tests/unit/unit.h
scaled_tests += tests/unit/agent/checkpoint/test_kills
tests_unit_agent_checkpoint_test_kills_SOURCES = tests/unit/agent/checkpoint/test_kills.c $(checkpoint_folder)
tests_unit_agent_checkpoint_test_kills_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_checkpoint_test_kills_LDADD = $(agent_test_libs)
tests_unit_agent_checkpoint_test_lock_SOURCES = tests/unit/agent/checkpoint/test_lock.c $(checkpoint_folder)
tests_unit_agent_checkpoint_test_lock_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_checkpoint_test_lock_LDADD = $(agent_test_libs)
tests_unit_agent_checkpoint_test_manifest_SOURCES = tests/unit/agent/checkpoint/test_manifest.c $(cases)
tests_unit_agent_checkpoint_test_manifest_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_agent_checkpoint_test_manifest_LDADD = $(agent_test_libs) $(JANSSON_LIBS)
tests_unit_base_test_ask_SOURCES = tests/unit/base/test_ask.c $(cases)
tests_unit_base_test_ask_CPPFLAGS = $(agent_test_cppflags)
tests_unit_base_test_ask_LDADD = $(agent_test_libs)
tests_unit_agent_launch_test_launch_SOURCES = tests/unit/agent/launch/test_launch.c tests/unit/base/net/name_service.h $(cases)
tests_unit_agent_launch_test_launch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_launch_test_launch_LDADD = $(agent_test_libs)
tests_unit_agent_checkpoint_test_store_SOURCES = tests/unit/agent/checkpoint/test_store.c $(checkpoint_folder)
tests_unit_agent_checkpoint_test_store_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_checkpoint_test_store_LDADD = $(agent_test_libs)
# Calls that allocate are counted in all that is linked statically.
tests_unit_agent_cost_test_choose_SOURCES = tests/unit/agent/cost/test_choose.c tests/unit/unit.h
tests_unit_agent_cost_test_choose_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_cost_test_choose_LDADD = $(agent_test_libs) -lm
tests_unit_agent_strategy_gradients_test_compress_SOURCES = tests/unit/agent/strategy/gradients/test_compress.c \
	tests/unit/allocations.h tests/unit/unit.h
tests_unit_agent_strategy_gradients_test_compress_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_gradients_test_compress_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_agent_strategy_gradients_test_compress_LDADD = $(agent_test_libs)
tests_unit_agent_strategy_replicas_test_crew_SOURCES = tests/unit/agent/strategy/replicas/test_crew.c tests/unit/unit.h
tests_unit_agent_strategy_replicas_test_crew_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_replicas_test_crew_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_data_SOURCES = tests/unit/agent/data/test_data.c $(pictures) $(cases)
tests_unit_agent_data_test_data_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_data_LDADD = $(agent_test_libs)
trees = tests/unit/agent/data/trees.c tests/unit/agent/data/trees.h
tests_unit_agent_data_test_archives_SOURCES = tests/unit/agent/data/test_archives.c $(trees) $(pictures) tests/unit/unit.h
tests_unit_agent_data_test_archives_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_archives_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_notes_SOURCES = tests/unit/agent/data/test_notes.c $(trees) $(pictures) tests/unit/unit.h
tests_unit_agent_data_test_notes_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_notes_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_splits_SOURCES = tests/unit/agent/data/test_splits.c $(trees) $(pictures) $(cases)
tests_unit_agent_data_test_splits_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_splits_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_foreign_SOURCES = tests/unit/agent/data/test_foreign.c $(trees) $(pictures)
tests_unit_agent_data_test_foreign_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_foreign_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_hold_out_SOURCES = tests/unit/agent/data/test_hold_out.c $(trees) $(pictures)
tests_unit_agent_data_test_hold_out_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_hold_out_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_labels_SOURCES = tests/unit/agent/data/test_labels.c $(trees) $(pictures) $(cases)
tests_unit_agent_data_test_labels_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_labels_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_formats_SOURCES = tests/unit/agent/data/test_formats.c $(pictures) $(cases)
tests_unit_agent_data_test_formats_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_formats_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_augment_SOURCES = tests/unit/agent/data/test_augment.c tests/unit/unit.h
tests_unit_agent_data_test_augment_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_augment_LDADD = $(agent_test_libs) -lm
tests_unit_agent_data_test_input_SOURCES = tests/unit/agent/data/test_input.c $(pictures) tests/unit/unit.h
tests_unit_agent_data_test_input_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_input_LDADD = $(agent_test_libs)
tests_unit_agent_train_test_fit_SOURCES = tests/unit/agent/train/test_fit.c $(pictures) tests/unit/unit.h
tests_unit_agent_train_test_fit_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_test_fit_LDADD = $(agent_test_libs)
tests_unit_agent_train_test_identity_SOURCES = tests/unit/agent/train/test_identity.c tests/unit/unit.h
tests_unit_agent_train_test_identity_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_test_identity_LDADD = $(agent_test_libs)
tests_unit_agent_train_test_slow_SOURCES = tests/unit/agent/train/test_slow.c tests/unit/unit.h
tests_unit_agent_train_test_slow_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_test_slow_LDADD = $(agent_test_libs)
tests_unit_agent_train_test_place_SOURCES = tests/unit/agent/train/test_place.c tests/unit/unit.h
tests_unit_agent_train_test_place_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_test_place_LDADD = $(agent_test_libs)
tests_unit_agent_train_test_watch_SOURCES = tests/unit/agent/train/test_watch.c tests/unit/unit.h
tests_unit_agent_train_test_watch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_test_watch_LDADD = $(agent_test_libs)
EXTRA_DIST += tests/unit/agent/train/fit_ranks.t tests/unit/agent/cost/batch.t tests/unit/agent/strategy/norm_ranks.t \
	tests/unit/agent/comm/reduce_ranks.t
tests_unit_agent_train_fit_ranks_SOURCES = tests/unit/agent/train/fit_ranks.c $(pictures)
tests_unit_agent_train_fit_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_train_fit_ranks_LDADD = $(agent_test_libs)
tests_unit_agent_strategy_norm_ranks_SOURCES = tests/unit/agent/strategy/norm_ranks.c $(pictures)
tests_unit_agent_strategy_norm_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_norm_ranks_LDADD = $(agent_test_libs)
tests_gpu_without_libraries_test_nccl_SOURCES = tests/gpu_without/libraries/test_nccl.c \
	tests/gpu_without/libraries/recorder.c tests/gpu_without/libraries/recorder.h tests/unit/unit.h
tests_gpu_without_libraries_test_nccl_CPPFLAGS = $(agent_test_cppflags)
tests_gpu_without_libraries_test_nccl_LDADD = $(agent_test_libs)
tests_gpu_without_libraries_test_nccl_agreement_SOURCES = tests/gpu_without/libraries/test_nccl_agreement.c \
	tests/gpu_without/libraries/recorder.c tests/gpu_without/libraries/recorder.h tests/unit/unit.h
tests_gpu_without_libraries_test_nccl_agreement_CPPFLAGS = $(agent_test_cppflags)
tests_gpu_without_libraries_test_nccl_agreement_LDADD = $(agent_test_libs)
tests_unit_agent_cost_test_plan_SOURCES = tests/unit/agent/cost/test_plan.c tests/unit/unit.h
tests_unit_agent_cost_test_plan_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_cost_test_plan_LDADD = $(agent_test_libs) -lm
tests_unit_agent_cost_test_nodes_SOURCES = tests/unit/agent/cost/test_nodes.c $(pictures) $(cases)
tests_unit_agent_cost_test_nodes_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_agent_cost_test_nodes_LDADD = $(agent_test_libs) $(JANSSON_LIBS) -lm
tests_unit_agent_rank_test_node_state_SOURCES = tests/unit/agent/rank/test_node_state.c $(pictures) $(cases)
tests_unit_agent_rank_test_node_state_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_rank_test_node_state_LDADD = $(agent_test_libs)
tests_unit_agent_cost_test_predict_SOURCES = tests/unit/agent/cost/test_predict.c tests/unit/unit.h
tests_unit_agent_cost_test_predict_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_cost_test_predict_LDADD = $(agent_test_libs) -lm
tests_unit_agent_comm_reduce_ranks_SOURCES = tests/unit/agent/comm/reduce_ranks.c
tests_unit_agent_comm_reduce_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_comm_reduce_ranks_LDADD = $(agent_test_libs)
# Calls that allocate are counted in all that is linked statically.
tests_unit_agent_ps_test_ps_SOURCES = tests/unit/agent/ps/test_ps.c tests/unit/unit.h
tests_unit_agent_ps_test_ps_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_ps_test_ps_LDADD = $(agent_test_libs)
tests_unit_agent_ps_test_ps_pace_SOURCES = tests/unit/agent/ps/test_ps_pace.c tests/unit/unit.h
tests_unit_agent_ps_test_ps_pace_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_ps_test_ps_pace_LDADD = $(agent_test_libs)
tests_unit_agent_strategy_replicas_test_replicas_SOURCES = tests/unit/agent/strategy/replicas/test_replicas.c \
	tests/unit/allocations.h tests/unit/unit.h
tests_unit_agent_strategy_replicas_test_replicas_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_replicas_test_replicas_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_agent_strategy_replicas_test_replicas_LDADD = $(agent_test_libs)
tests_unit_agent_results_test_events_SOURCES = tests/unit/agent/results/test_events.c $(pictures) tests/unit/unit.h
tests_unit_agent_results_test_events_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_results_test_events_LDADD = $(agent_test_libs)
tests_unit_agent_results_test_results_SOURCES = tests/unit/agent/results/test_results.c $(pictures) tests/unit/unit.h
tests_unit_agent_results_test_results_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_agent_results_test_results_LDADD = $(agent_test_libs)
tests_unit_agent_results_test_metric_SOURCES = tests/unit/agent/results/test_metric.c tests/unit/unit.h
tests_unit_agent_results_test_metric_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_results_test_metric_LDADD = $(agent_test_libs)
tests_unit_agent_results_test_tally_SOURCES = tests/unit/agent/results/test_tally.c tests/unit/unit.h
tests_unit_agent_results_test_tally_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_agent_results_test_tally_LDADD = $(agent_test_libs)
# Calls that allocate are counted in all that is linked statically.
tests_unit_agent_results_test_live_SOURCES = tests/unit/agent/results/test_live.c tests/unit/allocations.h $(cases)
tests_unit_agent_results_test_live_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_agent_results_test_live_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_agent_results_test_live_LDADD = $(agent_test_libs) $(JANSSON_LIBS)
tests_unit_agent_top_test_top_SOURCES = tests/unit/agent/top/test_top.c tests/unit/unit.h
tests_unit_agent_top_test_top_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_top_test_top_LDADD = $(agent_test_libs)
tests_unit_agent_data_test_sampler_SOURCES = tests/unit/agent/data/test_sampler.c tests/unit/unit.h
tests_unit_agent_data_test_sampler_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_data_test_sampler_LDADD = $(agent_test_libs)
tests_unit_agent_strategy_test_stage_layout_SOURCES = tests/unit/agent/strategy/test_stage_layout.c tests/unit/unit.h
tests_unit_agent_strategy_test_stage_layout_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_strategy_test_stage_layout_LDADD = $(agent_test_libs)
watch_group = tests/unit/agent/comm/watch_group.c tests/unit/agent/comm/watch_group.h
tests_unit_agent_comm_test_watch_SOURCES = tests/unit/agent/comm/test_watch.c $(watch_group) tests/unit/unit.h
tests_unit_agent_comm_test_watch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_comm_test_watch_LDADD = $(agent_test_libs)
tests_unit_agent_comm_test_standstill_SOURCES = tests/unit/agent/comm/test_standstill.c $(watch_group) tests/unit/unit.h
tests_unit_agent_comm_test_standstill_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_comm_test_standstill_LDADD = $(agent_test_libs)
tests_unit_base_net_test_resolve_SOURCES = tests/unit/base/net/test_resolve.c tests/unit/base/net/name_service.h $(cases)
tests_unit_base_net_test_resolve_CPPFLAGS = $(agent_test_cppflags)
tests_unit_base_net_test_resolve_LDADD = $(agent_test_libs)
tests_unit_base_net_test_frame_SOURCES = tests/unit/base/net/test_frame.c $(cases)
tests_unit_base_net_test_frame_CPPFLAGS = $(agent_test_cppflags)
tests_unit_base_net_test_frame_LDADD = $(agent_test_libs)
tests_unit_agent_comm_test_wire_SOURCES = tests/unit/agent/comm/test_wire.c tests/unit/unit.h
tests_unit_agent_comm_test_wire_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_comm_test_wire_LDADD = $(agent_test_libs)
