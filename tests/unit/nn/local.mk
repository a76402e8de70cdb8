# Unit tests of nn/.
if HAVE_CMOCKA
unit_tests += \
	tests/unit/nn/backend/cpu/test_loops tests/unit/nn/backend/cpu/test_products \
	tests/unit/nn/backend/cuda/test_shapes tests/unit/nn/backend/ref/test_gradients \
	tests/unit/nn/backend/test_bf16 tests/unit/nn/backend/test_conv2d tests/unit/nn/backend/test_fp16 \
	tests/unit/nn/backend/test_ops tests/unit/nn/backend/test_updates \
	tests/unit/nn/file/keras/test_keras tests/unit/nn/file/test_onnx tests/unit/nn/file/test_torchvision \
	tests/unit/nn/file/test_weights \
	tests/unit/nn/graph/test_graph tests/unit/nn/graph/test_initializers tests/unit/nn/graph/test_model \
	tests/unit/nn/graph/test_optimizer \
	tests/unit/nn/plan/test_freeze tests/unit/nn/plan/test_fusions tests/unit/nn/plan/test_sums \
	tests/unit/nn/run/test_penalty tests/unit/nn/run/test_random tests/unit/nn/run/test_state tests/unit/nn/run/test_step \
	tests/unit/nn/run/test_targets tests/unit/nn/run/test_train \
	tests/unit/nn/split/test_shard tests/unit/nn/split/test_stage
if HAVE_HDF5
unit_tests += tests/unit/nn/file/keras/test_weights_h5
endif
check_LTLIBRARIES += tests/unit/nn/backend/ref/libref64.la
scale_tests += tests/unit/nn/backend/cpu/isa.t
long_tests += tests/unit/nn/backend/cpu/products.t
scaled_tests += tests/unit/nn/file/test_torchvision tests/unit/nn/split/test_shard tests/unit/nn/split/test_stage
endif

# The reference in double precision, for numerical gradients.
tests_unit_nn_backend_ref_libref64_la_SOURCES = $(nn_ref_kernels)
tests_unit_nn_backend_ref_libref64_la_CPPFLAGS = $(AM_CPPFLAGS) -DHPCT_REF_REAL=double
tests_unit_nn_backend_ref_test_gradients_LDADD = tests/unit/nn/backend/ref/libref64.la $(LDADD)

tests_unit_nn_run_test_step_LDFLAGS = $(AM_LDFLAGS) $(count_allocations)
tests_unit_nn_split_test_stage_LDFLAGS = $(AM_LDFLAGS) $(count_allocations) -Wl,--wrap=hpct_backend_host_allocate
