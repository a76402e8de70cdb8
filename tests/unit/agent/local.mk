# Unit tests of agent/ and base/.
if HAVE_CMOCKA
unit_tests += \
	tests/gpu_without/libraries/test_nccl tests/gpu_without/libraries/test_nccl_agreement \
	tests/unit/agent/checkpoint/test_kills tests/unit/agent/checkpoint/test_lock \
	tests/unit/agent/checkpoint/test_manifest tests/unit/agent/checkpoint/test_store \
	tests/unit/agent/comm/test_wire \
	tests/unit/agent/cost/test_bench tests/unit/agent/cost/test_choose tests/unit/agent/cost/test_nodes \
	tests/unit/agent/cost/test_plan tests/unit/agent/cost/test_predict \
	tests/unit/agent/data/test_archives tests/unit/agent/data/test_augment tests/unit/agent/data/test_data \
	tests/unit/agent/data/test_foreign tests/unit/agent/data/test_formats tests/unit/agent/data/test_hold_out \
	tests/unit/agent/data/test_input tests/unit/agent/data/test_labels tests/unit/agent/data/test_notes \
	tests/unit/agent/data/test_sampler tests/unit/agent/data/test_splits \
	tests/unit/agent/launch/test_launch tests/unit/agent/predict/test_scores \
	tests/unit/agent/ps/test_ps tests/unit/agent/ps/test_ps_pace \
	tests/unit/agent/cost/test_batch tests/unit/agent/rank/test_node_state tests/unit/agent/report/test_report \
	tests/unit/agent/results/test_events tests/unit/agent/results/test_live \
	tests/unit/agent/results/test_metric tests/unit/agent/results/test_results tests/unit/agent/results/test_tally \
	tests/unit/agent/strategy/gradients/test_buckets tests/unit/agent/strategy/gradients/test_compress \
	tests/unit/agent/strategy/replicas/test_thread_pool tests/unit/agent/strategy/replicas/test_replicas \
	tests/unit/agent/strategy/test_stage_layout tests/unit/agent/top/test_top \
	tests/unit/agent/train/test_fit tests/unit/agent/train/test_identity tests/unit/agent/train/test_place \
	tests/unit/agent/train/test_slow tests/unit/agent/train/test_watch \
	tests/unit/base/auth/test_auth tests/unit/base/net/test_frame tests/unit/base/net/test_resolve tests/unit/base/test_ask
# The same training as so many ranks.
check_PROGRAMS += tests/unit/agent/train/fit_ranks tests/unit/agent/strategy/norm_ranks \
	tests/unit/agent/comm/reduce_ranks
rank_tests += tests/unit/agent/train/fit_ranks.t tests/unit/agent/cost/batch.t \
	tests/unit/agent/strategy/norm_ranks.t tests/unit/agent/comm/reduce_ranks.t
endif
scaled_tests += tests/unit/agent/checkpoint/test_kills

# What the memory has to offer, and what time it is, is told by the test.
tests_unit_agent_cost_test_batch_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_memory_share_now
tests_unit_agent_cost_test_bench_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_run_clock
tests_unit_agent_results_test_live_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_agent_strategy_gradients_test_compress_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_agent_strategy_replicas_test_replicas_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)

# What stands for CUDA and NCCL.
recorder = tests/gpu_without/libraries/recorder.c
tests_gpu_without_libraries_test_nccl_SOURCES = tests/gpu_without/libraries/test_nccl.c $(recorder)
tests_gpu_without_libraries_test_nccl_agreement_SOURCES = tests/gpu_without/libraries/test_nccl_agreement.c $(recorder)
