# nn/: tensors, the model graph, layers, losses, optimizers, models. Knows nothing of ranks.
hpctrain_HEADERS += include/hpctrain/export.h include/hpctrain/model.h include/hpctrain/optimizer.h
noinst_LTLIBRARIES += nn/libnn.la nn/libnncpu.la nn/libnnop.la

# What modules have their own copies of: what follows from an operation's description alone.
nn_libnnop_la_SOURCES = \
	nn/backend/memory.c \
	nn/backend/norm_line.h \
	nn/backend/picture.h \
	nn/backend/transposed.c nn/backend/transposed.h \
	nn/backend/without.c nn/backend/without.h \
	nn/graph/elements.h \
	nn/graph/kinds.c nn/graph/kinds.h \
	nn/graph/op.c nn/graph/op.h \
	nn/graph/rng.c nn/graph/rng.h
nn_libnnop_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
nn_libnnop_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd

nn_libnn_la_SOURCES = \
	nn/backend/backend.h \
	nn/backend/bf16.h \
	nn/backend/collective.c nn/backend/collective.h \
	nn/backend/dropout.h \
	nn/backend/frozen_norm.c \
	nn/backend/grouped_norm.c \
	nn/backend/host_fallback.c \
	nn/backend/line.h \
	nn/backend/module.c nn/backend/module.h \
	nn/backend/noise.h \
	nn/backend/norm_sync.c nn/backend/norm_sync.h \
	nn/backend/permute.h \
	nn/backend/types.h \
	nn/backends/backends.c nn/backends/backends.h \
	nn/backends/precision.c \
	nn/file/onnx/activations.c nn/file/onnx/channels.c nn/file/onnx/rows.h \
	nn/file/onnx/builder.c nn/file/onnx/builder.h \
	nn/file/onnx/nodes.c nn/file/onnx/nodes.h \
	nn/file/onnx/save.c \
	nn/file/onnx/tensors.c nn/file/onnx/tensors.h \
	nn/file/safetensors.c nn/file/safetensors.h \
	nn/file/torchvision.c nn/file/torchvision.h \
	nn/file/layers.c nn/file/layers.h \
	nn/file/weights.c nn/file/weights.h \
	nn/file/weights_safetensors.c \
	nn/graph/class_names.c \
	nn/graph/compile.c nn/graph/compile.h \
	nn/graph/cost.c nn/graph/cost.h \
	nn/graph/freeze.c \
	nn/graph/fuse.c \
	nn/graph/graph.c nn/graph/graph.h \
	nn/graph/hold.h \
	nn/graph/initializer.c nn/graph/initializer.h \
	nn/graph/loss_scaling.h \
	nn/graph/variation.h \
	nn/graph/optimizer.c nn/graph/optimizer.h \
	nn/graph/parallel.c nn/graph/parallel.h \
	nn/graph/peers.h \
	nn/graph/schedule.c nn/graph/schedule.h \
	nn/graph/shape.c nn/graph/shape.h \
	nn/plan/arenas.c nn/plan/arenas.h \
	nn/plan/blocks.c \
	nn/plan/build.c \
	nn/plan/flow.c \
	nn/plan/fusions.c nn/plan/fusions.h \
	nn/plan/matrices.c \
	nn/plan/memory_plan.c \
	nn/plan/options.h \
	nn/plan/place.c \
	nn/plan/print.c nn/plan/plan.c nn/plan/plan.h \
	nn/plan/run.h \
	nn/plan/transit.c \
	nn/run/clone.c nn/run/clone.h \
	nn/run/emulate.c nn/run/emulate.h \
	nn/run/finite.c nn/run/finite.h \
	nn/run/exchange.c \
	nn/run/targets.c \
	nn/run/params.c \
	nn/run/parts.c nn/run/parts.h \
	nn/run/penalty.c nn/run/penalty.h \
	nn/run/predict.c \
	nn/run/profile.c nn/run/profile.h \
	nn/run/record.c nn/run/record.h \
	nn/run/replay.c nn/run/replay.h \
	nn/run/resident.c nn/run/resident.h \
	nn/run/run.h \
	nn/run/snapshot.c nn/run/snapshot.h \
	nn/run/state.c nn/run/state.h \
	nn/run/slow_ways.c nn/run/slow_ways.h \
	nn/run/step.c nn/run/step.h \
	nn/run/summary.c \
	nn/run/synced.c nn/run/synced.h \
	nn/run/update.c \
	nn/split/cut.c nn/split/cut.h \
	nn/split/shard.c nn/split/shard.h \
	nn/split/shard_options.h \
	nn/split/shard_plan.c nn/split/shard_plan.h \
	nn/split/stage.c nn/split/stage.h \
	$(nn_keras) \
	nn/backend/ref/norm.c nn/backend/ref/norm.h \
	nn/backend/ref/penalty.c \
	nn/backend/ref/ref.c nn/backend/ref/ref.h \
	nn/backend/ref/update.c \
	nn/graph/layer/activation.c nn/graph/layer/activation.h \
	nn/graph/layer/batch_normalization.c \
	nn/graph/layer/conv2d.c \
	nn/graph/layer/conv2d_transpose.c \
	nn/graph/layer/dense.c \
	nn/graph/layer/dropout.c \
	nn/graph/layer/flatten.c \
	nn/graph/layer/group_normalization.c \
	nn/graph/layer/join.c nn/graph/layer/line.h nn/graph/layer/normalization.c \
	nn/graph/layer/layer_scale.c \
	nn/graph/layer/permute.c \
	nn/graph/layer/picture.c \
	nn/graph/layer/pool2d.c \
	nn/graph/layer/rescaling.c \
	nn/graph/layer/reshape.c \
	nn/graph/layer/variation.c \
	nn/graph/layer/window.c nn/graph/layer/window.h \
	nn/graph/layer/zero_padding2d.c \
	nn/graph/model/builtin.h \
	nn/graph/model/densenet.c \
	nn/graph/model/efficientnet.c \
	nn/graph/model/inception.c nn/graph/model/inception.h \
	nn/graph/model/inverted_residual.c nn/graph/model/inverted_residual.h \
	nn/graph/model/mnist_cnn.c \
	nn/graph/model/mnist_convnet.c \
	nn/graph/model/mobilenet.c \
	nn/graph/model/parts.c nn/graph/model/parts.h \
	nn/graph/model/resnet.c \
	nn/graph/model/torchvision/densenet.c \
	nn/graph/model/torchvision/inception.c \
	nn/graph/model/torchvision/mobile.c \
	nn/graph/model/torchvision/parts.c nn/graph/model/torchvision/parts.h \
	nn/graph/model/torchvision/resnet.c \
	nn/graph/model/torchvision/vgg.c \
	nn/graph/model/vgg.c \
	nn/graph/model/xception.c \
	nn/models/builtin.c nn/models/builtin.h \
	$(nn_ref_kernels)
nn_libnn_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE -DHPCT_MODULE_DIR='"$(pkglibdir)"' $(JANSSON_CFLAGS) $(HDF5_CPPFLAGS)
nn_libnn_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
nn_libnn_la_LIBADD = nn/libnnop.la nn/libnncpu.la base/libbase.la base/libfile.la $(JANSSON_LIBS)

# Keras' files: models as JSON, weights as HDF5. HDF5's library is loaded at run time.
nn_keras = \
	nn/file/keras/elements.c nn/file/keras/elements.h \
	nn/file/keras/fields.c nn/file/keras/fields.h \
	nn/file/keras/initializers.c nn/file/keras/initializers.h \
	nn/file/keras/keras.h \
	nn/file/keras/layers.c \
	nn/file/keras/order.c nn/file/keras/order.h \
	nn/file/keras/read.c nn/file/keras/read_call.c nn/file/keras/read_layer.c \
	nn/file/keras/reader.h \
	nn/file/keras/refused.c nn/file/keras/refused.h \
	nn/file/keras/regularizers.c nn/file/keras/regularizers.h \
	nn/file/keras/settings.c \
	nn/file/keras/skips.c nn/file/keras/skips.h \
	nn/file/keras/variations.c nn/file/keras/variations.h \
	nn/file/keras/weights_h5.h \
	nn/file/keras/write.c
if HAVE_HDF5
nn_keras += \
	nn/file/keras/child_h5.c \
	nn/file/keras/fit_h5.c \
	nn/file/keras/groups_h5.c nn/file/keras/groups_h5.h nn/file/keras/nested_h5.c \
	nn/file/keras/hdf5.c nn/file/keras/hdf5.h \
	nn/file/keras/hdf5_library.c nn/file/keras/hdf5_library.h \
	nn/file/keras/weights_h5.c
else
nn_keras += nn/file/keras/no_hdf5.c
endif

nn_ref_kernels = \
	nn/backend/ref/activation.c \
	nn/backend/ref/average_pool2d.c \
	nn/backend/ref/batch_norm.c \
	nn/backend/ref/conv2d.c \
	nn/backend/ref/dense.c \
	nn/backend/ref/dropout.c \
	nn/backend/ref/gaussian_noise.c \
	nn/backend/ref/group_norm.c \
	nn/backend/ref/join.c \
	nn/backend/ref/kernels.h \
	nn/backend/ref/line.c \
	nn/backend/ref/loss.c \
	nn/backend/ref/max_pool2d.c \
	nn/backend/ref/pad2d.c \
	nn/backend/ref/permute.c \
	nn/backend/ref/picture.c \
	nn/backend/ref/rescaling.c \
	nn/backend/ref/variation.c

# The cpu backend: OpenMP and oneDNN stay in here.
nn_libnncpu_la_SOURCES = \
	nn/backend/cpu/activation.c \
	nn/backend/cpu/batch_norm.c \
	nn/backend/cpu/bf16.c nn/backend/cpu/bf16.h \
	nn/backend/cpu/conv2d.c \
	nn/backend/cpu/conv2d_bf16.c \
	nn/backend/cpu/conv2d_transpose.c \
	nn/backend/cpu/backend.h \
	nn/backend/cpu/cpu.c nn/backend/cpu/cpu.h \
	nn/backend/cpu/dense.c \
	nn/backend/cpu/direct.c \
	nn/backend/cpu/dnnl.h \
	nn/backend/cpu/dropout.c \
	nn/backend/cpu/group_norm.c \
	nn/backend/cpu/join.c \
	nn/backend/cpu/known_bad.c nn/backend/cpu/known_bad.h \
	nn/backend/cpu/line.c \
	nn/backend/cpu/loops.c nn/backend/cpu/loops.h \
	nn/backend/cpu/loops_bf16.h \
	nn/backend/cpu/loops_body.h \
	nn/backend/cpu/loops_direct.h \
	nn/backend/cpu/loops_dropout.h \
	nn/backend/cpu/loops_elements.h \
	nn/backend/cpu/loops_group.h \
	nn/backend/cpu/loops_norm.h \
	nn/backend/cpu/loops_pool.h \
	nn/backend/cpu/loops_update.h \
	nn/backend/cpu/loss.c \
	nn/backend/cpu/max_pool2d.c \
	nn/backend/cpu/meter.c \
	nn/backend/cpu/multiply.c \
	nn/backend/cpu/pad2d.c \
	nn/backend/cpu/picture.c \
	nn/backend/cpu/penalty.c \
	nn/backend/cpu/prims.c \
	nn/backend/cpu/product.c \
	nn/backend/cpu/rates.c \
	nn/backend/cpu/rescaling.c \
	nn/backend/cpu/samples.c \
	nn/backend/cpu/scratch.h \
	nn/backend/cpu/shim.c nn/backend/cpu/shim.h \
	nn/backend/cpu/shim_eltwise.c \
	nn/backend/cpu/shim_product.c \
	nn/backend/cpu/shim_window.c \
	nn/backend/cpu/update.c \
	nn/backend/cpu/variation.c
nn_libnncpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CPPFLAGS)
# sqrtf becomes one instruction where it need not set errno.
nn_libnncpu_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) -fno-math-errno
nn_libnncpu_la_LIBADD = $(ONEDNN_LIBS) $(OPENMP_CFLAGS)

include nn/backend/cuda/local.mk
