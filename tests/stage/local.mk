# tests/stage/: hpc-train-stage as a command, without a cluster.
stage_tests = tests/stage/edges.t tests/stage/extract.t tests/stage/out.t tests/stage/stage.t
TESTS += $(stage_tests)
EXTRA_DIST += $(stage_tests)
