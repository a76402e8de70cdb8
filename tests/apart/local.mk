# A module in the place of the GPU's, to be loaded by HPC_TRAIN_MODULE_DIR, and what is run with it.
check_LTLIBRARIES += tests/apart/hpctrain-cuda.la
tests_apart_hpctrain_cuda_la_SOURCES = tests/apart/module.c tests/apart/calls.c \
	tests/apart/nccl.c tests/apart/nccl.h tests/apart/noting.h tests/apart/wall.c tests/apart/wall.h nn/collective.c nn/module.h nn/module_status.c \
	nn/norm_sync.c nn/ref/normed.c nn/ref/ref.c nn/ref/ref.h nn/ref/update.c $(nn_ref_kernels)
tests_apart_hpctrain_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_apart_hpctrain_cuda_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
tests_apart_hpctrain_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -no-undefined -Wl,-z,defs
tests_apart_hpctrain_cuda_la_LIBADD = nn/libnnop.la -lm
EXTRA_DIST += $(apart_tests) tests/apart/lib.sh
scaled_tests += $(apart_tests)
