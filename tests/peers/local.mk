# Comparisons with other frameworks; each skips itself where the framework is not installed.
check_PROGRAMS += tests/peers/nn_losses tests/peers/nn_optimizers
tests_peers_nn_losses_SOURCES = tests/peers/nn_losses.c
tests_peers_nn_losses_LDADD = nn/libnn.la
tests_peers_nn_optimizers_SOURCES = tests/peers/nn_optimizers.c
tests_peers_nn_optimizers_LDADD = nn/libnn.la
check_PROGRAMS += tests/peers/data_dump
tests_peers_data_dump_SOURCES = tests/peers/data_dump.c
tests_peers_data_dump_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
tests_peers_data_dump_LDADD = $(hpct_parts)
peer_tests = tests/peers/data.t tests/peers/frameworks.t tests/peers/nn_keras.t tests/peers/nn_optimizers.t
long_tests += tests/peers/examples.t
TESTS += $(peer_tests)
EXTRA_DIST += $(peer_tests) tests/peers/data_peers.py tests/peers/examples.t tests/peers/nn_keras.py tests/peers/nn_optimizers.py tests/peers/parameter_server.py tests/peers/tf_config.py tests/peers/torch_gloo.py
