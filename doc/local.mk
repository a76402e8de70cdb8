# doc/: man pages and guides.
dist_doc_DATA += doc/architecture.md doc/gpu-results.md doc/parameter-server.md doc/performance-model.md doc/results.md doc/sandbox.md doc/security.md doc/systems.md
dist_man_MANS += doc/hpc-train.1 doc/hpc-train-stage.1 doc/hpc-train-check.8 doc/spank_hpc_train.8
