# Unit tests of nn/.
if HAVE_CMOCKA
unit_tests += tests/unit/nn/backend/test_bf16 tests/unit/nn/backend/test_fp16 tests/unit/nn/backend/cuda/test_shapes \
	tests/unit/nn/graph/test_graph tests/unit/nn/graph/test_model tests/unit/nn/backend/test_conv2d \
	tests/unit/nn/backend/test_ops \
	tests/unit/nn/plan/test_freeze \
	tests/unit/nn/plan/test_fusions tests/unit/nn/plan/test_sums tests/unit/nn/backend/test_updates tests/unit/nn/backend/cpu/test_loops \
	tests/unit/nn/backend/cpu/test_products \
	tests/unit/nn/graph/test_optimizer tests/unit/nn/backend/ref/test_gradients tests/unit/nn/run/test_random \
	tests/unit/nn/split/test_shard tests/unit/nn/split/test_stage tests/unit/nn/run/test_step \
	tests/unit/nn/run/test_penalty \
	tests/unit/nn/run/test_state tests/unit/nn/run/test_targets tests/unit/nn/run/test_train tests/unit/nn/file/test_onnx tests/unit/nn/file/test_weights tests/unit/nn/graph/test_initializers \
	tests/unit/nn/file/keras/test_keras
if HAVE_HDF5
unit_tests += tests/unit/nn/file/keras/test_weights_h5
endif
check_LTLIBRARIES += tests/unit/nn/backend/ref/libref64.la
scale_tests += tests/unit/nn/backend/cpu/isa.t
long_tests += tests/unit/nn/backend/cpu/products.t
endif
EXTRA_DIST += tests/unit/nn/backend/cpu/isa.t tests/unit/nn/backend/cpu/products.t
nn_test_libs = nn/libnn.la $(CMOCKA_LIBS)
nn_case = tests/unit/nn/nn_case.c tests/unit/nn/nn_case.h
ops_check = tests/unit/nn/backend/ops_check.c tests/unit/nn/backend/ops_check.h $(nn_case)
nn_small = tests/unit/nn/nn_small.c tests/unit/nn/nn_small.h

# The reference in double precision, for numerical gradients.
tests_unit_nn_backend_ref_libref64_la_SOURCES = $(nn_ref_kernels)
tests_unit_nn_backend_ref_libref64_la_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_REF_REAL=double

tests_unit_nn_graph_test_model_SOURCES = tests/unit/nn/graph/test_model.c tests/unit/unit.h
tests_unit_nn_graph_test_model_CPPFLAGS = $(test_cppflags)
tests_unit_nn_graph_test_model_LDADD = $(nn_test_libs)
tests_unit_nn_graph_test_graph_SOURCES = tests/unit/nn/graph/test_graph.c $(nn_case) tests/unit/unit.h
tests_unit_nn_graph_test_graph_CPPFLAGS = $(test_cppflags)
tests_unit_nn_graph_test_graph_LDADD = $(nn_test_libs)
tests_unit_nn_plan_test_freeze_SOURCES = tests/unit/nn/plan/test_freeze.c $(nn_small) tests/unit/unit.h
tests_unit_nn_plan_test_freeze_CPPFLAGS = $(test_cppflags)
tests_unit_nn_plan_test_freeze_LDADD = $(nn_test_libs) -lm
tests_unit_nn_plan_test_fusions_SOURCES = tests/unit/nn/plan/test_fusions.c tests/unit/unit.h
tests_unit_nn_plan_test_fusions_CPPFLAGS = $(test_cppflags)
tests_unit_nn_plan_test_fusions_LDADD = $(nn_test_libs)
tests_unit_nn_plan_test_sums_SOURCES = tests/unit/nn/plan/test_sums.c $(nn_case) tests/unit/unit.h
tests_unit_nn_plan_test_sums_CPPFLAGS = $(test_cppflags)
tests_unit_nn_plan_test_sums_LDADD = $(nn_test_libs)
tests_unit_nn_graph_test_optimizer_SOURCES = tests/unit/nn/graph/test_optimizer.c tests/unit/unit.h
tests_unit_nn_graph_test_optimizer_CPPFLAGS = $(test_cppflags)
tests_unit_nn_graph_test_optimizer_LDADD = $(nn_test_libs)
tests_unit_nn_backend_test_bf16_SOURCES = tests/unit/nn/backend/test_bf16.c tests/unit/unit.h
tests_unit_nn_backend_test_bf16_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_test_bf16_LDADD = $(nn_test_libs)

tests_unit_nn_backend_test_fp16_SOURCES = tests/unit/nn/backend/test_fp16.c $(nn_small) tests/unit/unit.h
tests_unit_nn_backend_test_fp16_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_test_fp16_LDADD = $(nn_test_libs) -lm
tests_unit_nn_backend_cuda_test_shapes_SOURCES = tests/unit/nn/backend/cuda/test_shapes.c $(nn_case) tests/unit/unit.h
tests_unit_nn_backend_cuda_test_shapes_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_cuda_test_shapes_LDADD = $(nn_test_libs) -lm

tests_unit_nn_backend_test_conv2d_SOURCES = tests/unit/nn/backend/test_conv2d.c $(ops_check) tests/unit/unit.h
tests_unit_nn_backend_test_conv2d_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_test_conv2d_LDADD = $(nn_test_libs)
tests_unit_nn_backend_test_ops_SOURCES = tests/unit/nn/backend/test_ops.c $(ops_check) tests/unit/unit.h
tests_unit_nn_backend_test_ops_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_test_ops_LDADD = $(nn_test_libs)
tests_unit_nn_backend_test_updates_SOURCES = tests/unit/nn/backend/test_updates.c $(nn_case) tests/unit/unit.h
tests_unit_nn_backend_test_updates_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_test_updates_LDADD = $(nn_test_libs) -lm
tests_unit_nn_backend_cpu_test_loops_SOURCES = tests/unit/nn/backend/cpu/test_loops.c $(nn_case) tests/unit/unit.h
tests_unit_nn_backend_cpu_test_loops_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_cpu_test_loops_LDADD = $(nn_test_libs)
tests_unit_nn_backend_cpu_test_products_SOURCES = tests/unit/nn/backend/cpu/test_products.c $(ops_check) tests/unit/unit.h
tests_unit_nn_backend_cpu_test_products_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_cpu_test_products_LDADD = $(nn_test_libs) -lm
tests_unit_nn_run_test_targets_SOURCES = tests/unit/nn/run/test_targets.c tests/unit/unit.h
tests_unit_nn_run_test_targets_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_targets_LDADD = $(nn_test_libs) -lm
tests_unit_nn_run_test_random_SOURCES = tests/unit/nn/run/test_random.c tests/unit/unit.h
tests_unit_nn_run_test_random_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_random_LDADD = $(nn_test_libs)
# The parts of a model run on threads.
tests_unit_nn_split_test_shard_SOURCES = tests/unit/nn/split/test_shard.c tests/unit/nn/split/shard_models.c \
	tests/unit/nn/split/shard_models.h tests/unit/nn/split/shard_parts.c tests/unit/nn/split/shard_parts.h \
	tests/unit/unit.h
tests_unit_nn_split_test_shard_CPPFLAGS = $(test_cppflags)
tests_unit_nn_split_test_shard_CFLAGS = $(AM_CFLAGS) -pthread
tests_unit_nn_split_test_shard_LDADD = $(nn_test_libs) -lpthread -lm
tests_unit_nn_backend_ref_test_gradients_SOURCES = tests/unit/nn/backend/ref/test_gradients.c $(nn_case) \
	tests/unit/unit.h
tests_unit_nn_backend_ref_test_gradients_CPPFLAGS = $(test_cppflags)
tests_unit_nn_backend_ref_test_gradients_LDADD = tests/unit/nn/backend/ref/libref64.la $(nn_test_libs)

# Calls that allocate are counted in all that is linked statically: nn, not the libraries below it.
tests_unit_nn_run_test_step_SOURCES = tests/unit/nn/run/test_step.c $(nn_small) tests/unit/allocations.h \
	tests/unit/unit.h
tests_unit_nn_run_test_step_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_step_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_nn_run_test_step_LDADD = $(nn_test_libs)
tests_unit_nn_split_test_stage_SOURCES = tests/unit/nn/split/test_stage.c tests/unit/allocations.h tests/unit/unit.h
tests_unit_nn_split_test_stage_CPPFLAGS = $(test_cppflags)
tests_unit_nn_split_test_stage_LDFLAGS = $(AM_LDFLAGS) $(count_allocations) -Wl,--wrap=hpct_host_allocate
tests_unit_nn_split_test_stage_LDADD = $(nn_test_libs) -lm
tests_unit_nn_run_test_penalty_SOURCES = tests/unit/nn/run/test_penalty.c $(nn_small) tests/unit/unit.h
tests_unit_nn_run_test_penalty_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_penalty_LDADD = $(nn_test_libs) -lm
tests_unit_nn_run_test_state_SOURCES = tests/unit/nn/run/test_state.c $(nn_small) tests/unit/unit.h
tests_unit_nn_run_test_state_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_state_LDADD = $(nn_test_libs)
tests_unit_nn_run_test_train_SOURCES = tests/unit/nn/run/test_train.c $(nn_small) tests/unit/unit.h
tests_unit_nn_run_test_train_CPPFLAGS = $(test_cppflags)
tests_unit_nn_run_test_train_LDADD = $(nn_test_libs)
tests_unit_nn_file_test_onnx_SOURCES = tests/unit/nn/file/test_onnx.c tests/unit/unit.h
tests_unit_nn_file_test_onnx_CPPFLAGS = $(test_cppflags) -D_GNU_SOURCE
tests_unit_nn_file_test_onnx_LDADD = $(nn_test_libs)
unit_tests += tests/unit/nn/file/test_torchvision
tests_unit_nn_file_test_torchvision_SOURCES = tests/unit/nn/file/test_torchvision.c tests/unit/unit.h
tests_unit_nn_file_test_torchvision_CPPFLAGS = $(test_cppflags)
tests_unit_nn_file_test_torchvision_LDADD = $(nn_test_libs)
tests_unit_nn_file_test_weights_SOURCES = tests/unit/nn/file/test_weights.c $(cases)
tests_unit_nn_file_test_weights_CPPFLAGS = $(test_cppflags)
tests_unit_nn_file_test_weights_LDADD = $(nn_test_libs)
tests_unit_nn_graph_test_initializers_SOURCES = tests/unit/nn/graph/test_initializers.c tests/unit/unit.h
tests_unit_nn_graph_test_initializers_CPPFLAGS = $(test_cppflags)
tests_unit_nn_graph_test_initializers_LDADD = $(nn_test_libs)
tests_unit_nn_file_keras_test_keras_SOURCES = tests/unit/nn/file/keras/test_keras.c $(cases)
tests_unit_nn_file_keras_test_keras_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
tests_unit_nn_file_keras_test_keras_LDADD = $(nn_test_libs)
tests_unit_nn_file_keras_test_weights_h5_SOURCES = tests/unit/nn/file/keras/test_weights_h5.c tests/unit/unit.h
tests_unit_nn_file_keras_test_weights_h5_CPPFLAGS = $(test_cppflags)
tests_unit_nn_file_keras_test_weights_h5_LDADD = $(nn_test_libs)
