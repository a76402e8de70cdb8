# cuDNN itself, asked on described devices whether it has engines for every graph of a training step. The module's files
# are in these programs; a description is in place of a device's handle.
if HAVE_CUDA
if HAVE_CMOCKA
unit_tests += tests/gpu_without/cudnn_accepts/test_cudnn_accepts tests/gpu_without/libraries/test_cudnn_plans
scaled_tests += tests/gpu_without/cudnn_accepts/test_cudnn_accepts
endif
build_tests += tests/gpu_without/kernels/resources.t
scaled_tests += tests/gpu_without/kernels/resources.t
endif
described_gpu = tests/gpu_without/libraries/described_gpu.c
described_gpu_cppflags = $(cuda_on_host_cppflags) $(JANSSON_CFLAGS)
described_gpu_wraps = -Wl,--wrap=cudaMemGetInfo -Wl,--wrap=cudnnBackendSetAttribute -Wl,--wrap=hpct_cuda_conv_take_small \
	-Wl,--wrap=hpct_dnn_find -Wl,--wrap=hpct_dnn_propose -Wl,--wrap=hpct_cuda_self_test_open -Wl,--wrap=hpct_cuda_self_test_run -Wl,--wrap=hpct_cuda_tune_choices \
	-Wl,--wrap=hpct_cuda_tune_memory -Wl,--wrap=hpct_cuda_tune_release -Wl,--wrap=hpct_cuda_tune_time
described_gpu_libs = $(filter-out %-module_status.lo,$(hpctrain_cuda_la_OBJECTS)) $(cuda_kernels:.cu=.lo) nn/libnn.la $(CMOCKA_LIBS) \
	$(JANSSON_LIBS) $(CUDA_LIBS) -lstdc++ -lm

tests_gpu_without_cudnn_accepts_test_cudnn_accepts_SOURCES = tests/gpu_without/cudnn_accepts/code.c \
	tests/gpu_without/cudnn_accepts/graphs.c tests/gpu_without/cudnn_accepts/models.c tests/gpu_without/cudnn_accepts/table.c \
	tests/gpu_without/cudnn_accepts/test_cudnn_accepts.c $(described_gpu)
tests_gpu_without_cudnn_accepts_test_cudnn_accepts_CPPFLAGS = $(described_gpu_cppflags) -D_GNU_SOURCE
tests_gpu_without_cudnn_accepts_test_cudnn_accepts_LDFLAGS = $(described_gpu_wraps)
tests_gpu_without_cudnn_accepts_test_cudnn_accepts_LDADD = $(described_gpu_libs)

tests_gpu_without_libraries_test_cudnn_plans_SOURCES = tests/gpu_without/libraries/test_cudnn_plans.c $(described_gpu)
tests_gpu_without_libraries_test_cudnn_plans_CPPFLAGS = $(described_gpu_cppflags)
tests_gpu_without_libraries_test_cudnn_plans_LDFLAGS = $(described_gpu_wraps) -Wl,--wrap=hpct_dnn_candidate_make \
	-Wl,--wrap=hpct_dnn_take
tests_gpu_without_libraries_test_cudnn_plans_LDADD = $(described_gpu_libs)
