# etc/: configuration, job scripts, examples, the one-machine cluster.
EXTRA_DIST += etc/sandbox/common etc/sandbox/controller etc/sandbox/enter etc/sandbox/node etc/sandbox/sandbox \
	etc/sandbox/supervisor quickstart
