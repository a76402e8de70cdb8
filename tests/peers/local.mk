# Comparisons with other frameworks; each skips itself where the framework is not installed.
check_PROGRAMS += tests/peers/augment tests/peers/callbacks tests/peers/data_dump tests/peers/metrics_file tests/peers/nn_files \
	tests/peers/nn_layers tests/peers/nn_losses tests/peers/nn_models tests/peers/nn_optimizers tests/peers/scores
if HAVE_CMOCKA
check_PROGRAMS += tests/peers/checkpoint
endif
peer_tests = tests/peers/applications.t tests/peers/augment.t tests/peers/builtin_models.t tests/peers/callbacks.t \
	tests/peers/checkpoint.t tests/peers/frameworks.t tests/peers/freeze.t tests/peers/from_python.t tests/peers/labels.t \
	tests/peers/metrics_file.t tests/peers/nn_bf16.t tests/peers/nn_files.t tests/peers/nn_keras.t tests/peers/nn_layers.t \
	tests/peers/nn_optimizers.t tests/peers/onnx.t tests/peers/refused.t tests/peers/regularizers.t \
	tests/peers/report_browser.t tests/peers/scores.t tests/peers/tensorboard.t tests/peers/torchvision.t
long_peer_tests = tests/peers/examples.t tests/peers/guide.t tests/peers/nn_cifar.t tests/peers/nn_models.t \
	tests/peers/nn_torch.t tests/peers/transfer.t
long_tests += $(long_peer_tests)
scaled_tests += tests/peers/callbacks.t tests/peers/nn_files.t tests/peers/nn_optimizers.t tests/peers/onnx.t \
	tests/peers/torchvision.t
EXTRA_DIST += $(peer_tests) $(long_peer_tests) tests/peers/data.t tests/peers/peers.h \
	tests/peers/applications.py tests/peers/augment.py tests/peers/builtin_models.py tests/peers/callbacks.py \
	tests/peers/checkpoint.py tests/peers/cifar.py tests/peers/data_peers.py tests/peers/freeze.py \
	tests/peers/from_python.py tests/peers/guide.py tests/peers/keras_models.py tests/peers/labels.py \
	tests/peers/metrics_file.py tests/peers/nn_bf16.py tests/peers/nn_cifar.py tests/peers/nn_files.py \
	tests/peers/nn_keras.py tests/peers/nn_layers.py tests/peers/nn_models.py tests/peers/nn_optimizers.py \
	tests/peers/nn_torch.py tests/peers/onnx_models.py tests/peers/parameter_server.py tests/peers/refused.py \
	tests/peers/regularizers.py tests/peers/scores.py tests/peers/tensorboard_events.py tests/peers/tensors.py \
	tests/peers/tf_config.py tests/peers/torch_gloo.py tests/peers/torchvision_models.py tests/peers/transfer.py
