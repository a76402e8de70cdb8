# A module in the place of the GPU's, to be loaded by HPC_TRAIN_MODULE_DIR, and what is run with it.
check_LTLIBRARIES += tests/gpu_without/module/hpctrain-cuda.la
tests_gpu_without_module_hpctrain_cuda_la_SOURCES = tests/gpu_without/module/module.c tests/gpu_without/module/calls.c \
	tests/gpu_without/module/nccl.c tests/gpu_without/module/nccl.h tests/gpu_without/module/noting.h \
	tests/gpu_without/module/wall.c tests/gpu_without/module/wall.h nn/backend/collective.c nn/backend/module.h \
	nn/backend/module_status.c nn/backend/norm_sync.c nn/backend/ref/penalty.c nn/backend/ref/ref.c \
	nn/backend/ref/ref.h nn/backend/ref/update.c $(nn_ref_kernels)
tests_gpu_without_module_hpctrain_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_gpu_without_module_hpctrain_cuda_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
tests_gpu_without_module_hpctrain_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere \
	-no-undefined -Wl,-z,defs
tests_gpu_without_module_hpctrain_cuda_la_LIBADD = nn/libnnop.la -lm
EXTRA_DIST += $(module_tests) tests/gpu_without/module/lib.sh
scaled_tests += $(module_tests)
