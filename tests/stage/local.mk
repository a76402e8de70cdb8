# tests/stage/: hpc-train-stage as a command, without a cluster.
stage_tests = tests/stage/collisions.t tests/stage/edges.t tests/stage/extract.t tests/stage/faults.t tests/stage/out.t \
	tests/stage/signals.t tests/stage/stage.t

# One thing goes wrong in each run of hpc-train-stage.
# With HPC_TRAIN_LONG the folders are on a disk (folder_in_memory).
scaled_tests += tests/stage/faults.t tests/stage/signals.t tests/stage/collisions.t tests/stage/edges.t tests/stage/extract.t \
	tests/stage/out.t
check_PROGRAMS += tests/stage/faults
check_LTLIBRARIES += tests/stage/fault.la
tests_stage_fault_la_LDFLAGS = $(test_module)
tests_stage_faults_LDADD =

# File systems without what local ones have.
check_LTLIBRARIES += tests/stage/old_fs.la
tests_stage_old_fs_la_LDFLAGS = $(test_module)

# A name service that never answers.
check_LTLIBRARIES += tests/stage/hung_names.la
tests_stage_hung_names_la_LDFLAGS = $(test_module)
