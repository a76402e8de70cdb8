# Comparisons with other frameworks; each skips itself where the framework is not installed.
check_PROGRAMS += tests/peers/nn_files tests/peers/nn_layers tests/peers/nn_losses tests/peers/nn_models \
	tests/peers/nn_optimizers
check_PROGRAMS += tests/peers/callbacks
tests_peers_callbacks_SOURCES = tests/peers/callbacks.c
tests_peers_callbacks_CPPFLAGS = $(test_cppflags)
tests_peers_callbacks_LDADD = $(hpct_parts)
check_PROGRAMS += tests/peers/scores
tests_peers_scores_SOURCES = tests/peers/scores.c tests/peers/peers.h
tests_peers_scores_CPPFLAGS = $(test_cppflags) $(JANSSON_CFLAGS)
tests_peers_scores_LDADD = $(hpct_parts)
tests_peers_nn_files_SOURCES = tests/peers/nn_files.c
tests_peers_nn_files_LDADD = nn/libnn.la
tests_peers_nn_layers_SOURCES = tests/peers/nn_layers.c tests/peers/peers.h
tests_peers_nn_layers_LDADD = nn/libnn.la
tests_peers_nn_losses_SOURCES = tests/peers/nn_losses.c tests/peers/peers.h
tests_peers_nn_losses_LDADD = nn/libnn.la
tests_peers_nn_models_SOURCES = tests/peers/nn_models.c tests/peers/peers.h
tests_peers_nn_models_LDADD = nn/libnn.la
tests_peers_nn_optimizers_SOURCES = tests/peers/nn_optimizers.c
tests_peers_nn_optimizers_LDADD = nn/libnn.la
if HAVE_CMOCKA
check_PROGRAMS += tests/peers/checkpoint
endif
tests_peers_checkpoint_SOURCES = tests/peers/checkpoint.c $(checkpoint_folder)
tests_peers_checkpoint_CPPFLAGS = $(agent_test_cppflags)
tests_peers_checkpoint_LDADD = $(agent_test_libs)
check_PROGRAMS += tests/peers/metrics_file
tests_peers_metrics_file_SOURCES = tests/peers/metrics_file.c
tests_peers_metrics_file_LDADD = $(hpct_parts)
peer_tests = tests/peers/applications.t tests/peers/builtin_models.t tests/peers/callbacks.t tests/peers/checkpoint.t tests/peers/frameworks.t \
	tests/peers/freeze.t tests/peers/labels.t tests/peers/metrics_file.t \
	tests/peers/nn_bf16.t tests/peers/nn_files.t tests/peers/nn_keras.t \
	tests/peers/nn_layers.t tests/peers/nn_optimizers.t tests/peers/report_browser.t tests/peers/scores.t tests/peers/tensorboard.t
long_peer_tests = tests/peers/examples.t tests/peers/guide.t tests/peers/nn_cifar.t tests/peers/nn_models.t tests/peers/nn_torch.t tests/peers/transfer.t
long_tests += $(long_peer_tests)
scaled_tests += tests/peers/callbacks.t tests/peers/nn_files.t tests/peers/nn_optimizers.t
EXTRA_DIST += $(peer_tests) $(long_peer_tests) tests/peers/labels.py tests/peers/applications.py tests/peers/builtin_models.py tests/peers/callbacks.py tests/peers/checkpoint.py tests/peers/cifar.py \
	tests/peers/freeze.py tests/peers/guide.py \
	tests/peers/metrics_file.py tests/peers/keras_models.py tests/peers/nn_bf16.py \
	tests/peers/nn_cifar.py tests/peers/nn_files.py tests/peers/nn_keras.py tests/peers/nn_layers.py \
	tests/peers/nn_models.py tests/peers/nn_optimizers.py tests/peers/nn_torch.py tests/peers/parameter_server.py \
	tests/peers/scores.py tests/peers/tensorboard_events.py tests/peers/tensors.py tests/peers/tf_config.py tests/peers/torch_gloo.py tests/peers/transfer.py
peer_tests += tests/peers/augment.t
# Exported models, and models of others as weights.
peer_tests += tests/peers/onnx.t tests/peers/torchvision.t
scaled_tests += tests/peers/onnx.t tests/peers/torchvision.t
EXTRA_DIST += tests/peers/onnx_models.py tests/peers/torchvision_models.py
# Penalties of weights.
peer_tests += tests/peers/regularizers.t
EXTRA_DIST += tests/peers/regularizers.py
# What there is not.
peer_tests += tests/peers/refused.t
EXTRA_DIST += tests/peers/refused.py
# From Python.
peer_tests += tests/peers/from_python.t
EXTRA_DIST += tests/peers/from_python.py
