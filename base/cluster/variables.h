/* base/cluster/variables.h - environment variables of all frameworks from a config. Independent of
 * SPANK: the caller decides where they are set. */
#ifndef HPCT_BASE_CLUSTER_VARIABLES_H
#define HPCT_BASE_CLUSTER_VARIABLES_H

#include "base/cluster/config.h"

/* Frameworks as bits. MPI only needs srun's variables for PMIx and PMI. */
enum {
    HPCT_CLUSTER_FRAMEWORK_TF = 1,
    HPCT_CLUSTER_FRAMEWORK_TORCH = 2,
    HPCT_CLUSTER_FRAMEWORK_JAX = 4,
    HPCT_CLUSTER_FRAMEWORK_MPI = 8,
    HPCT_CLUSTER_FRAMEWORK_ALL = 15,
};

/* HPC_TRAIN_CONFIG is omitted above this size; the file always has it. */
#define HPCT_CLUSTER_MAX_CONFIG_VARIABLE 65536
/* The kernel, and Slurm silently, drop variables from this size on, name included. */
#define HPCT_CLUSTER_MAX_VARIABLE 131072

/* Parses "tf,torch,jax,mpi", "all" or "none". Returns HPCT_ERR_USAGE naming the unknown word. */
hpct_status hpct_cluster_frameworks_parse(const char *text, unsigned *out);

/* Called for each variable; value NULL: unset it. An error ends the emission. */
typedef hpct_status (*hpct_cluster_variable_sink)(void *context, const char *name,
                                                  const char *value);

/* Emits HPC_TRAIN_*, SLURM_TMPDIR, TMPDIR and the frameworks' variables. `json`: the config as
 * text, `file`: its path. *dropped: a framework's variable omitted because of its length, or NULL.
 * TF_CONFIG as for TensorFlow's TFConfigClusterResolver; torch: as for init_method env:// and
 * torchrun; JAX: as for jax.distributed.initialize. */
hpct_status hpct_cluster_variables_emit(const hpct_cluster_config *config, unsigned frameworks,
                                        const char *json, const char *file,
                                        hpct_cluster_variable_sink sink, void *context,
                                        const char **dropped);

/* All names that hpct_cluster_variables_emit may set, NULL-terminated; for unsetting them. */
extern const char *const hpct_cluster_variable_names[];

#endif
