# Comparisons with other frameworks; each skips itself where the framework is not installed.
check_PROGRAMS += tests/peers/nn_files tests/peers/nn_layers tests/peers/nn_losses tests/peers/nn_optimizers
tests_peers_nn_files_SOURCES = tests/peers/nn_files.c
tests_peers_nn_files_LDADD = nn/libnn.la
tests_peers_nn_layers_SOURCES = tests/peers/nn_layers.c
tests_peers_nn_layers_LDADD = nn/libnn.la
tests_peers_nn_losses_SOURCES = tests/peers/nn_losses.c
tests_peers_nn_losses_LDADD = nn/libnn.la
tests_peers_nn_optimizers_SOURCES = tests/peers/nn_optimizers.c
tests_peers_nn_optimizers_LDADD = nn/libnn.la
peer_tests = tests/peers/frameworks.t tests/peers/nn_files.t tests/peers/nn_keras.t tests/peers/nn_layers.t \
	tests/peers/nn_optimizers.t
long_tests += tests/peers/examples.t
TESTS += $(peer_tests)
scaled_tests += tests/peers/nn_files.t
EXTRA_DIST += $(peer_tests) tests/peers/examples.t tests/peers/nn_files.py tests/peers/nn_keras.py \
	tests/peers/nn_layers.py tests/peers/nn_optimizers.py tests/peers/parameter_server.py \
	tests/peers/tf_config.py tests/peers/torch_gloo.py
