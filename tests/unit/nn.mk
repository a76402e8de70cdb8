# Unit tests of nn/.
if HAVE_CMOCKA
unit_tests += tests/unit/test_nn_bf16 tests/unit/test_nn_fp16 tests/unit/test_nn_cuda_host tests/unit/test_nn_graph tests/unit/test_nn_model tests/unit/test_nn_ops tests/unit/test_nn_sums tests/unit/test_nn_updates \
	tests/unit/test_nn_loops tests/unit/test_nn_optimizer \
	tests/unit/test_nn_gradients tests/unit/test_nn_random tests/unit/test_nn_shard tests/unit/test_nn_stage tests/unit/test_nn_step tests/unit/test_nn_train tests/unit/test_nn_weights \
	tests/unit/test_nn_keras
if HAVE_HDF5
unit_tests += tests/unit/test_nn_weights_h5
endif
check_LTLIBRARIES += tests/unit/libref64.la
TESTS += tests/unit/isa.t
endif
EXTRA_DIST += tests/unit/isa.t
nn_test_libs = nn/libnn.la $(CMOCKA_LIBS)
nn_case = tests/unit/nn_case.c tests/unit/nn_case.h
nn_small = tests/unit/nn_small.c tests/unit/nn_small.h

# The reference in double precision, for numerical gradients.
tests_unit_libref64_la_SOURCES = $(nn_ref_kernels)
tests_unit_libref64_la_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_REF_REAL=double

tests_unit_test_nn_model_SOURCES = tests/unit/test_nn_model.c tests/unit/unit.h
tests_unit_test_nn_model_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_model_LDADD = $(nn_test_libs)
tests_unit_test_nn_graph_SOURCES = tests/unit/test_nn_graph.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_graph_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_graph_LDADD = $(nn_test_libs)
tests_unit_test_nn_sums_SOURCES = tests/unit/test_nn_sums.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_sums_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_sums_LDADD = $(nn_test_libs)
tests_unit_test_nn_optimizer_SOURCES = tests/unit/test_nn_optimizer.c tests/unit/unit.h
tests_unit_test_nn_optimizer_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_optimizer_LDADD = $(nn_test_libs)
tests_unit_test_nn_bf16_SOURCES = tests/unit/test_nn_bf16.c tests/unit/unit.h
tests_unit_test_nn_bf16_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_bf16_LDADD = $(nn_test_libs)

tests_unit_test_nn_fp16_SOURCES = tests/unit/test_nn_fp16.c $(nn_small) tests/unit/unit.h
tests_unit_test_nn_fp16_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_fp16_LDADD = $(nn_test_libs) -lm
tests_unit_test_nn_cuda_host_SOURCES = tests/unit/test_nn_cuda_host.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_cuda_host_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_cuda_host_LDADD = $(nn_test_libs) -lm

tests_unit_test_nn_ops_SOURCES = tests/unit/test_nn_ops.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_ops_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_ops_LDADD = $(nn_test_libs)
tests_unit_test_nn_updates_SOURCES = tests/unit/test_nn_updates.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_updates_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_updates_LDADD = $(nn_test_libs) -lm
tests_unit_test_nn_loops_SOURCES = tests/unit/test_nn_loops.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_loops_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_loops_LDADD = $(nn_test_libs)
tests_unit_test_nn_random_SOURCES = tests/unit/test_nn_random.c tests/unit/unit.h
tests_unit_test_nn_random_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_random_LDADD = $(nn_test_libs)
# The parts of a model run on threads.
tests_unit_test_nn_shard_SOURCES = tests/unit/test_nn_shard.c tests/unit/shard_models.c tests/unit/shard_models.h tests/unit/shard_parts.c tests/unit/shard_parts.h \
	tests/unit/unit.h
tests_unit_test_nn_shard_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_shard_CFLAGS = $(AM_CFLAGS) -pthread
tests_unit_test_nn_shard_LDADD = $(nn_test_libs) -lpthread -lm
tests_unit_test_nn_gradients_SOURCES = tests/unit/test_nn_gradients.c $(nn_case) tests/unit/unit.h
tests_unit_test_nn_gradients_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_gradients_LDADD = tests/unit/libref64.la $(nn_test_libs)

# Calls that allocate are counted in all that is linked statically: nn, not the libraries below it.
tests_unit_test_nn_step_SOURCES = tests/unit/test_nn_step.c $(nn_small) tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_nn_step_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_step_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_test_nn_step_LDADD = $(nn_test_libs)
tests_unit_test_nn_stage_SOURCES = tests/unit/test_nn_stage.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_test_nn_stage_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_stage_LDFLAGS = $(AM_LDFLAGS) $(count_allocations) -Wl,--wrap=hpct_host_allocate
tests_unit_test_nn_stage_LDADD = $(nn_test_libs) -lm
tests_unit_test_nn_train_SOURCES = tests/unit/test_nn_train.c $(nn_small) tests/unit/unit.h
tests_unit_test_nn_train_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_train_LDADD = $(nn_test_libs)
tests_unit_test_nn_weights_SOURCES = tests/unit/test_nn_weights.c tests/unit/unit.h
tests_unit_test_nn_weights_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_weights_LDADD = $(nn_test_libs)
tests_unit_test_nn_keras_SOURCES = tests/unit/test_nn_keras.c tests/unit/unit.h
tests_unit_test_nn_keras_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
tests_unit_test_nn_keras_LDADD = $(nn_test_libs)
tests_unit_test_nn_weights_h5_SOURCES = tests/unit/test_nn_weights_h5.c tests/unit/unit.h
tests_unit_test_nn_weights_h5_CPPFLAGS = $(test_cppflags)
tests_unit_test_nn_weights_h5_LDADD = $(nn_test_libs)
