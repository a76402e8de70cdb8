# doc/: man pages and guides.
dist_doc_DATA += doc/adding-a-format.md doc/adding-a-layer.md doc/adding-a-metric.md doc/adding-a-staging-mode.md doc/adding-a-strategy.md doc/any-program.md doc/architecture.md \
	doc/gpu-graphs.md doc/gpu-results.md doc/gpu.md doc/layers.md doc/parameter-server.md doc/performance-model.md doc/results.md doc/sandbox.md \
	doc/security.md doc/staging.md doc/step.md doc/strategies.md doc/systems.md
dist_man_MANS += doc/man/hpc-train.1 doc/man/hpc-train-bench.1 doc/man/hpc-train-check.1 \
	doc/man/hpc-train-checkpoint.1 doc/man/hpc-train-data.1 doc/man/hpc-train-evaluate.1 doc/man/hpc-train-export.1 \
	doc/man/hpc-train-fit.1 doc/man/hpc-train-info.1 doc/man/hpc-train-launch.1 doc/man/hpc-train-plan.1 \
	doc/man/hpc-train-predict.1 doc/man/hpc-train-report.1 doc/man/hpc-train-stage.1 doc/man/hpc-train-summary.1 \
	doc/man/hpc-train-top.1 doc/man/hpc-train-models.7 doc/man/hpc-train-check.8 doc/man/spank_hpc_train.8
# for hpc-train report --beside
dist_pkgdata_DATA += doc/results/published.csv
# figures behind doc/results.md
EXTRA_DIST += doc/results/against-keras.csv \
	doc/results/applications.csv \
	doc/results/authentication-cost.csv \
	doc/results/bf16.csv \
	doc/results/cpu-before-after.csv \
	doc/results/emulated-speedup.csv \
	doc/results/input.csv \
	doc/results/lossy.csv \
	doc/results/other.csv \
	doc/results/peers-avx2.csv \
	doc/results/peers-avx512.csv doc/results/peers-models.csv \
	doc/results/plan-check-resnet50v2.csv \
	doc/results/plan-check-w1.csv \
	doc/results/staging-cpu-before-after.csv \
	doc/results/staging-cpu.csv \
	doc/results/staging-server.csv \
	doc/results/staging-wall.csv \
	doc/results/strong-scaling.csv \
	doc/results/sums-cpu.csv \
	doc/results/tcp-mpi-w1.csv \
	doc/results/tcp-mpi.csv \
	doc/results/two-nodes-amd.csv \
	doc/results/two-nodes-intel.csv \
	doc/results/two-nodes-other.csv \
	doc/results/two-nodes-resnet.csv \
	doc/results/w1-accuracy.csv \
	doc/results/w1-before-after.csv \
	doc/results/w1-floor.csv
