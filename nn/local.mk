# nn/: tensors, the model graph, layers, losses, optimizers, models. Knows nothing of ranks.
hpctrain_HEADERS += include/hpctrain/model.h include/hpctrain/optimizer.h
noinst_LTLIBRARIES += nn/libnn.la nn/libnncpu.la nn/libnnop.la

# What modules have their own copies of: what follows from an operation's description alone.
nn_libnnop_la_SOURCES = \
	nn/file.c \
	nn/file.h \
	nn/memory.c \
	nn/op.c \
	nn/norm_line.h \
	nn/op.h \
	nn/picture.c \
	nn/picture.h \
	nn/rng.c \
	nn/rng.h
nn_libnnop_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
nn_libnnop_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd

nn_libnn_la_SOURCES = \
	nn/backend.c \
	nn/backend.h \
	nn/bf16.h \
	nn/build.c \
	nn/clone.c \
	nn/clone.h \
	nn/collective.c \
	nn/collective.h \
	nn/compile.c \
	nn/cost.c \
	nn/cost.h \
	nn/cut.c \
	nn/cut.h \
	nn/dropout.h \
	nn/emulate.c \
	nn/emulate.h \
	nn/exchange.c \
	nn/blocks.c \
	nn/blocks.h \
	nn/flow.c \
	nn/fuse.c \
	nn/graph.c \
	nn/head.c \
	nn/head.h \
	nn/graph.h \
	nn/grouped_norm.c \
	nn/hosted.c nn/hosted.h \
	nn/grouped_norm.h \
	nn/kind.c \
	nn/kind.h \
	nn/loss_scaling.h \
	nn/matrices.c \
	nn/memory_plan.c \
	nn/merged.c \
	nn/merged.h \
	nn/module.c \
	nn/module.h \
	nn/norm_sync.c \
	nn/norm_sync.h \
	nn/optimizer.c \
	nn/optimizer.h \
	nn/output.c nn/output.h \
	nn/parallel.c \
	nn/parallel.h \
	nn/params.c \
	nn/parts.c \
	nn/parts.h \
	nn/place.c \
	nn/plan.c \
	nn/plan.h \
	nn/precision.c \
	nn/predict.c \
	nn/profile.c \
	nn/profile.h \
	nn/record.c \
	nn/replay.c \
	nn/replay.h \
	nn/record.h \
	nn/replicas.h \
	nn/resident.c \
	nn/resident.h \
	nn/drawn.h \
	nn/run.h \
	nn/safetensors.c \
	nn/safetensors.h \
	nn/schedule.c \
	nn/schedule.h \
	nn/shape.c \
	nn/shape.h \
	nn/shard.c \
	nn/shard.h \
	nn/shard_plan.c \
	nn/shard_plan.h \
	nn/snapshot.c \
	nn/snapshot.h \
	nn/stage.c \
	nn/stage.h \
	nn/step.c \
	nn/step.h \
	nn/summary.c \
	nn/update.c \
	nn/watcher.h \
	nn/weights.c \
	nn/weights.h \
	nn/weights_safetensors.c \
	$(nn_keras) \
	nn/layer/activation.c \
	nn/layer/activation.h \
	nn/layer/batch_normalization.c \
	nn/layer/conv2d.c \
	nn/layer/dense.c \
	nn/layer/dropout.c \
	nn/layer/flatten.c \
	nn/layer/join.c \
	nn/layer/picture.c \
	nn/layer/pool2d.c \
	nn/layer/rescaling.c \
	nn/layer/reshape.c \
	nn/layer/window.c \
	nn/layer/window.h \
	nn/layer/zero_padding2d.c \
	nn/model/builtin.c \
	nn/model/builtin.h \
	nn/model/mnist_cnn.c \
	nn/model/mnist_convnet.c \
	nn/model/resnet.c \
	nn/ref/normed.c \
	nn/ref/ref.c \
	nn/ref/ref.h \
	nn/ref/update.c \
	$(nn_ref_kernels)
nn_libnn_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -DHPCT_MODULE_DIR='"$(pkglibdir)"' $(JANSSON_CFLAGS) $(HDF5_CPPFLAGS)
nn_libnn_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
nn_libnn_la_LIBADD = nn/libnnop.la nn/libnncpu.la base/libbase.la $(JANSSON_LIBS)

# Keras' files: models as JSON, weights as HDF5. HDF5's library is loaded at run time.
nn_keras = \
	nn/keras/initializers.c \
	nn/keras/initializers.h \
	nn/keras/keras.h \
	nn/keras/layers.c \
	nn/keras/order.c \
	nn/keras/order.h \
	nn/keras/read.c \
	nn/keras/settings.c \
	nn/keras/weights_h5.h \
	nn/keras/write.c
if HAVE_HDF5
nn_keras += \
	nn/keras/hdf5.c \
	nn/keras/hdf5.h \
	nn/keras/hdf5_library.c \
	nn/keras/hdf5_library.h \
	nn/keras/weights_h5.c
else
nn_keras += nn/keras/no_hdf5.c
endif

nn_ref_kernels = \
	nn/ref/activation.c \
	nn/ref/average_pool2d.c \
	nn/ref/batch_norm.c \
	nn/ref/conv2d.c \
	nn/ref/dense.c \
	nn/ref/dropout.c \
	nn/ref/join.c \
	nn/ref/kernels.h \
	nn/ref/loss.c \
	nn/ref/max_pool2d.c \
	nn/ref/pad2d.c \
	nn/ref/picture.c \
	nn/ref/rescaling.c

# The cpu backend: OpenMP and oneDNN stay in here.
nn_libnncpu_la_SOURCES = \
	nn/cpu/activation.c \
	nn/cpu/average_pool2d.c \
	nn/cpu/batch_norm.c \
	nn/cpu/bf16.c \
	nn/cpu/bf16.h \
	nn/cpu/conv2d.c \
	nn/cpu/conv2d_bf16.c \
	nn/cpu/cpu.c \
	nn/cpu/cpu.h \
	nn/cpu/dense.c \
	nn/cpu/direct.c \
	nn/cpu/dnnl.h \
	nn/cpu/dropout.c \
	nn/cpu/eltwise.c \
	nn/cpu/join.c \
	nn/cpu/loops.c \
	nn/cpu/loops.h \
	nn/cpu/loops_bf16.h \
	nn/cpu/loops_body.h \
	nn/cpu/loops_direct.h \
	nn/cpu/loops_dropout.h \
	nn/cpu/loops_elements.h \
	nn/cpu/loops_norm.h \
	nn/cpu/loops_pool.h \
	nn/cpu/loops_update.h \
	nn/cpu/loss.c \
	nn/cpu/max_pool2d.c \
	nn/cpu/pad2d.c \
	nn/cpu/picture.c \
	nn/cpu/product.c \
	nn/cpu/rates.c \
	nn/cpu/rescaling.c \
	nn/cpu/scratch.h \
	nn/cpu/shim.c \
	nn/cpu/shim.h \
	nn/cpu/shim_eltwise.c \
	nn/cpu/shim_product.c \
	nn/cpu/shim_window.c \
	nn/cpu/update.c
nn_libnncpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
# sqrtf becomes one instruction where it need not set errno.
nn_libnncpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) -fno-math-errno
nn_libnncpu_la_LIBADD = $(ONEDNN_LIBS) $(OPENMP_CFLAGS)

include nn/cuda/local.mk
