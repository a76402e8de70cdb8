# Strategies on several ranks under mpirun, compared with one.
strategy_tests = tests/strategy/augment.t tests/strategy/auto.t \
	tests/strategy/central_storage.t tests/strategy/class_weights.t \
	tests/strategy/compress.t \
	tests/strategy/faults.t \
	tests/strategy/freeze.t \
	tests/strategy/hybrid.t \
	tests/strategy/identity.t \
	tests/strategy/local_sgd.t \
	tests/strategy/mirrored.t \
	tests/strategy/multi_worker_mirrored.t \
	tests/strategy/outage.t \
	tests/strategy/parameter_server.t \
	tests/strategy/parameter_server_reports.t \
	tests/strategy/pipeline.t \
	tests/strategy/regularizers.t \
	tests/strategy/standstill.t \
	tests/strategy/tcp.t
scaled_tests += $(strategy_tests)
check_PROGRAMS += tests/strategy/compare_weights
