# doc/: man pages and guides.
dist_doc_DATA += doc/architecture.md doc/sandbox.md
