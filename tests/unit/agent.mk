# Unit tests of agent/.
if HAVE_CMOCKA
unit_tests += tests/unit/test_auth tests/unit/test_batch tests/unit/test_bench tests/unit/test_buckets tests/unit/test_choose tests/unit/test_compress tests/unit/test_crew tests/unit/test_data \
	tests/unit/test_fit tests/unit/test_formats tests/unit/test_splits tests/unit/test_input tests/unit/test_nccl tests/unit/test_nccl_agreement tests/unit/test_plan tests/unit/test_predict tests/unit/test_ps \
	tests/unit/test_replicas tests/unit/test_report tests/unit/test_sampler tests/unit/test_stage_layout tests/unit/test_wire
# The same training as so many ranks.
check_PROGRAMS += tests/unit/fit_ranks tests/unit/norm_ranks tests/unit/reduce_ranks
TESTS += tests/unit/fit_ranks.t tests/unit/batch.t tests/unit/norm_ranks.t tests/unit/reduce_ranks.t
endif
agent_test_libs = $(hpct_parts) $(CMOCKA_LIBS)
agent_test_cppflags = $(test_cppflags) -D_GNU_SOURCE
pictures = tests/unit/pictures.c tests/unit/pictures.h

# What the memory has to offer is told by the test.
tests_unit_test_auth_SOURCES = tests/unit/test_auth.c tests/unit/unit.h
tests_unit_test_auth_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_auth_LDADD = $(agent_test_libs)
tests_unit_test_batch_SOURCES = tests/unit/test_batch.c $(pictures) tests/unit/unit.h
tests_unit_test_batch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_batch_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_memory_share_now
tests_unit_test_batch_LDADD = $(agent_test_libs)
tests_unit_test_bench_SOURCES = tests/unit/test_bench.c tests/unit/unit.h
tests_unit_test_bench_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_bench_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hpct_run_clock
tests_unit_test_bench_LDADD = $(agent_test_libs)
tests_unit_test_buckets_SOURCES = tests/unit/test_buckets.c tests/unit/unit.h
tests_unit_test_buckets_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_buckets_LDADD = $(agent_test_libs)
# Calls that allocate are counted in all that is linked statically.
tests_unit_test_choose_SOURCES = tests/unit/test_choose.c tests/unit/unit.h
tests_unit_test_choose_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_choose_LDADD = $(agent_test_libs) -lm
tests_unit_test_compress_SOURCES = tests/unit/test_compress.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_compress_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_compress_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_test_compress_LDADD = $(agent_test_libs)
tests_unit_test_crew_SOURCES = tests/unit/test_crew.c tests/unit/unit.h
tests_unit_test_crew_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_crew_LDADD = $(agent_test_libs)
tests_unit_test_data_SOURCES = tests/unit/test_data.c $(pictures) tests/unit/unit.h
tests_unit_test_data_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_data_LDADD = $(agent_test_libs)
tests_unit_test_splits_SOURCES = tests/unit/test_splits.c $(pictures) tests/unit/unit.h
tests_unit_test_splits_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_splits_LDADD = $(agent_test_libs)
tests_unit_test_formats_SOURCES = tests/unit/test_formats.c $(pictures) tests/unit/unit.h
tests_unit_test_formats_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_formats_LDADD = $(agent_test_libs)
tests_unit_test_input_SOURCES = tests/unit/test_input.c $(pictures) tests/unit/unit.h
tests_unit_test_input_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_input_LDADD = $(agent_test_libs)
tests_unit_test_fit_SOURCES = tests/unit/test_fit.c $(pictures) tests/unit/unit.h
tests_unit_test_fit_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_fit_LDADD = $(agent_test_libs)
EXTRA_DIST += tests/unit/fit_ranks.t tests/unit/batch.t tests/unit/norm_ranks.t tests/unit/reduce_ranks.t
tests_unit_fit_ranks_SOURCES = tests/unit/fit_ranks.c $(pictures)
tests_unit_fit_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_fit_ranks_LDADD = $(agent_test_libs)
tests_unit_norm_ranks_SOURCES = tests/unit/norm_ranks.c $(pictures)
tests_unit_norm_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_norm_ranks_LDADD = $(agent_test_libs)
tests_unit_test_nccl_SOURCES = tests/unit/test_nccl.c tests/unit/recorder.c tests/unit/recorder.h tests/unit/unit.h
tests_unit_test_nccl_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_nccl_LDADD = $(agent_test_libs)
tests_unit_test_nccl_agreement_SOURCES = tests/unit/test_nccl_agreement.c tests/unit/recorder.c tests/unit/recorder.h tests/unit/unit.h
tests_unit_test_nccl_agreement_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_nccl_agreement_LDADD = $(agent_test_libs)
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c tests/unit/unit.h
tests_unit_test_plan_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_plan_LDADD = $(agent_test_libs) -lm
tests_unit_test_predict_SOURCES = tests/unit/test_predict.c tests/unit/unit.h
tests_unit_test_predict_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_predict_LDADD = $(agent_test_libs) -lm
tests_unit_reduce_ranks_SOURCES = tests/unit/reduce_ranks.c
tests_unit_reduce_ranks_CPPFLAGS = $(agent_test_cppflags)
tests_unit_reduce_ranks_LDADD = $(agent_test_libs)
# Calls that allocate are counted in all that is linked statically.
tests_unit_test_ps_SOURCES = tests/unit/test_ps.c tests/unit/unit.h
tests_unit_test_ps_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_ps_LDADD = $(agent_test_libs)
tests_unit_test_replicas_SOURCES = tests/unit/test_replicas.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_replicas_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_replicas_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_test_replicas_LDADD = $(agent_test_libs)
tests_unit_test_report_SOURCES = tests/unit/test_report.c $(pictures) tests/unit/unit.h
tests_unit_test_report_CPPFLAGS = $(agent_test_cppflags) $(JANSSON_CFLAGS)
tests_unit_test_report_LDADD = $(agent_test_libs)
tests_unit_test_sampler_SOURCES = tests/unit/test_sampler.c tests/unit/unit.h
tests_unit_test_sampler_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_sampler_LDADD = $(agent_test_libs)
tests_unit_test_stage_layout_SOURCES = tests/unit/test_stage_layout.c tests/unit/unit.h
tests_unit_test_stage_layout_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_stage_layout_LDADD = $(agent_test_libs)
tests_unit_test_watch_SOURCES = tests/unit/test_watch.c tests/unit/unit.h
tests_unit_test_watch_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_watch_LDADD = $(agent_test_libs)
tests_unit_test_wire_SOURCES = tests/unit/test_wire.c tests/unit/unit.h
tests_unit_test_wire_CPPFLAGS = $(agent_test_cppflags)
tests_unit_test_wire_LDADD = $(agent_test_libs)
