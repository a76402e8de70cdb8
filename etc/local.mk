# etc/: configuration, job scripts, examples, the one-machine cluster.
