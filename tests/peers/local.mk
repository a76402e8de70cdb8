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
