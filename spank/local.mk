# spank/: the SPANK plugin. Only here is <slurm/spank.h> included.
