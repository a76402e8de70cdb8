# Unit tests of the GPU module's own kernels, which run on the host: no GPU is needed, CUDA's headers
# and compiler are.
if HAVE_CUDA
if HAVE_CMOCKA
check_LTLIBRARIES += tests/unit/libcudahost.la
unit_tests += tests/unit/test_cuda_copies tests/unit/test_cuda_dnn tests/unit/test_cuda_gather tests/unit/test_cuda_head tests/unit/test_cuda_loss tests/unit/test_cuda_moment tests/unit/test_cuda_norm tests/unit/test_cuda_ops tests/unit/test_cuda_races tests/unit/test_cuda_small tests/unit/test_cuda_updates
endif
endif
# The module's host side, compiled once for all of them.
tests_unit_libcudahost_la_SOURCES = tests/unit/cuda_backend.c tests/unit/cuda_backend.h \
	nn/cuda/activation.c nn/cuda/batch_norm.c nn/cuda/gather.c nn/cuda/join.c nn/cuda/loss.c nn/cuda/ops.c nn/cuda/pool.c \
	nn/cuda/random.c nn/cuda/softmax.c nn/cuda/update.c
cuda_on_host_cppflags = $(test_cppflags) $(CUDA_CPPFLAGS)
tests_unit_libcudahost_la_CPPFLAGS = $(cuda_on_host_cppflags)
cuda_on_host_libs = tests/unit/libcudahost.la $(on_host_objects) $(nn_test_libs) -lstdc++ -lm

tests_unit_test_cuda_copies_SOURCES = tests/unit/test_cuda_copies.c tests/unit/unit.h
tests_unit_test_cuda_copies_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_copies_LDADD = $(cuda_on_host_libs)
# The module itself, and cuDNN with a device's description in place of a handle.
tests_unit_test_cuda_dnn_SOURCES = tests/unit/test_cuda_dnn.c tests/unit/unit.h
tests_unit_test_cuda_dnn_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_dnn_LDFLAGS = -Wl,--wrap=cudnnBackendSetAttribute -Wl,--wrap=hpct_dnn_find -Wl,--wrap=hpct_dnn_propose \
	-Wl,--wrap=hpct_dnn_candidate_make -Wl,--wrap=hpct_dnn_take \
	-Wl,--wrap=hpct_conv_take_small -Wl,--wrap=hpct_tune_choices -Wl,--wrap=hpct_tune_memory -Wl,--wrap=hpct_tune_release \
	-Wl,--wrap=hpct_tune_time -Wl,--wrap=hpct_tune_workspace_limit
tests_unit_test_cuda_dnn_LDADD = $(filter-out %-module_status.lo,$(hpctrain_cuda_la_OBJECTS)) \
	$(cuda_kernels:.cu=.lo) $(nn_test_libs) $(CUDA_LIBS) -lstdc++ -lm
tests_unit_test_cuda_gather_SOURCES = tests/unit/test_cuda_gather.c tests/unit/gather_host.c \
	tests/unit/gather_host.h tests/unit/unit.h
tests_unit_test_cuda_gather_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_gather_LDADD = tests/unit/libcudahost.la $(on_host_objects) $(agent_test_libs) -lstdc++ -lm
tests_unit_test_cuda_head_SOURCES = tests/unit/test_cuda_head.c $(nn_case) tests/unit/unit.h
tests_unit_test_cuda_head_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_head_LDADD = $(cuda_on_host_libs)
tests_unit_test_cuda_loss_SOURCES = tests/unit/test_cuda_loss.c tests/unit/unit.h
tests_unit_test_cuda_loss_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_loss_LDADD = $(cuda_on_host_libs)
tests_unit_test_cuda_moment_SOURCES = tests/unit/test_cuda_moment.c tests/unit/unit.h
tests_unit_test_cuda_moment_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_moment_LDADD = $(cuda_on_host_libs)
tests_unit_test_cuda_norm_SOURCES = tests/unit/test_cuda_norm.c tests/unit/unit.h
tests_unit_test_cuda_norm_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_norm_LDADD = $(cuda_on_host_libs)
# The cases of test_nn_ops and test_nn_updates.
tests_unit_test_cuda_ops_SOURCES = tests/unit/test_nn_ops.c $(nn_case) tests/unit/unit.h
tests_unit_test_cuda_ops_CPPFLAGS = $(cuda_on_host_cppflags) -DNN_OPS_ON_HOST
tests_unit_test_cuda_ops_LDADD = $(cuda_on_host_libs)
# The emulated GPU itself: what it finds.
tests_unit_test_cuda_races_SOURCES = tests/unit/test_cuda_races.c tests/unit/races_kernels.h tests/unit/unit.h
tests_unit_test_cuda_races_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_races_LDADD = tests/unit/races_kernels.lo $(filter-out %cuda_kernels_on_host.lo,$(on_host_objects)) $(CMOCKA_LIBS) -lstdc++
tests_unit_test_cuda_small_SOURCES = tests/unit/test_cuda_small.c $(nn_case) tests/unit/unit.h
tests_unit_test_cuda_small_CPPFLAGS = $(cuda_on_host_cppflags)
tests_unit_test_cuda_small_LDADD = $(cuda_on_host_libs)
tests_unit_test_cuda_updates_SOURCES = tests/unit/test_nn_updates.c $(nn_case) tests/unit/unit.h
tests_unit_test_cuda_updates_CPPFLAGS = $(cuda_on_host_cppflags) -DNN_OPS_ON_HOST
tests_unit_test_cuda_updates_LDADD = $(cuda_on_host_libs)

EXTRA_DIST += tests/unit/cuda_on_host.cc tests/unit/cuda_on_host.h tests/unit/cuda_kernels_on_host.cc tests/unit/cuda_watch.cc tests/unit/cuda_watch.h tests/unit/races_kernels.cc
