# Unit tests of the GPU module's own kernels, which run on the host: no GPU is needed, CUDA's headers
# and compiler are.
if HAVE_CUDA
if HAVE_CMOCKA
check_LTLIBRARIES += tests/gpu_without/kernels/libcudahost.la
unit_tests += tests/gpu_without/kernels/test_copies \
	tests/gpu_without/kernels/test_gather tests/gpu_without/kernels/test_loss \
	tests/gpu_without/kernels/test_moment tests/gpu_without/kernels/test_norm tests/gpu_without/kernels/test_ops \
	tests/gpu_without/kernels/test_races tests/gpu_without/kernels/test_small \
	tests/gpu_without/kernels/test_updates
scaled_tests += tests/gpu_without/kernels/test_ops tests/gpu_without/kernels/test_updates
endif
endif
# The module's host side, compiled once for all of them.
tests_gpu_without_kernels_libcudahost_la_SOURCES = tests/gpu_without/kernels/cuda_backend.c nn/backend/cuda/batch_norm.c \
	nn/backend/cuda/ops.c nn/backend/cuda/update.c
cuda_on_host_cppflags = $(test_cppflags) $(CUDA_CPPFLAGS)
tests_gpu_without_kernels_libcudahost_la_CPPFLAGS = $(cuda_on_host_cppflags)
cuda_on_host_libs = $(test_helpers) tests/gpu_without/kernels/libcudahost.la $(on_host_objects) nn/libnn.la $(CMOCKA_LIBS) -lstdc++ -lm

tests_gpu_without_kernels_test_copies_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_copies_LDADD = $(cuda_on_host_libs)
tests_gpu_without_kernels_test_gather_SOURCES = tests/gpu_without/kernels/test_gather.c \
	tests/gpu_without/kernels/gather_host.c
tests_gpu_without_kernels_test_gather_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_gather_LDADD = $(test_helpers) tests/gpu_without/kernels/libcudahost.la $(on_host_objects) \
	$(hpct_parts) $(CMOCKA_LIBS) -lstdc++ -lm
tests_gpu_without_kernels_test_loss_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_loss_LDADD = $(cuda_on_host_libs)
tests_gpu_without_kernels_test_moment_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_moment_LDADD = $(cuda_on_host_libs)
tests_gpu_without_kernels_test_norm_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_norm_LDADD = $(cuda_on_host_libs)
# The cases of nn/backend/test_ops and test_updates.
tests_gpu_without_kernels_test_ops_SOURCES = tests/unit/nn/backend/test_ops.c $(ops_check)
tests_gpu_without_kernels_test_ops_CPPFLAGS = $(cuda_on_host_cppflags) -DNN_OPS_ON_HOST
tests_gpu_without_kernels_test_ops_LDADD = $(cuda_on_host_libs)
# The emulated GPU itself: what it finds.
tests_gpu_without_kernels_test_races_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_races_LDADD = $(test_helpers) tests/gpu_without/kernels/races_kernels.lo $(filter-out \
	$(kernels_on_host),$(on_host_objects)) $(CMOCKA_LIBS) -lstdc++
tests_gpu_without_kernels_test_small_SOURCES = tests/gpu_without/kernels/test_small.c $(nn_case)
tests_gpu_without_kernels_test_small_CPPFLAGS = $(cuda_on_host_cppflags)
tests_gpu_without_kernels_test_small_LDADD = $(cuda_on_host_libs)
tests_gpu_without_kernels_test_updates_SOURCES = tests/unit/nn/backend/test_updates.c $(nn_case)
tests_gpu_without_kernels_test_updates_CPPFLAGS = $(cuda_on_host_cppflags) -DNN_OPS_ON_HOST
tests_gpu_without_kernels_test_updates_LDADD = $(cuda_on_host_libs)

