/* agent/cluster/variables.h - the environment variables that tell programs of every framework what
 * a config says. Knows nothing of SPANK: who calls decides where the variables go. */
#ifndef HPCT_CLUSTER_VARIABLES_H
#define HPCT_CLUSTER_VARIABLES_H

#include "agent/cluster/config.h"

/* Frameworks, as bits. MPI needs no variable beyond those srun sets for PMIx and PMI. */
enum {
    HPCT_FRAMEWORK_TF = 1,
    HPCT_FRAMEWORK_TORCH = 2,
    HPCT_FRAMEWORK_JAX = 4,
    HPCT_FRAMEWORK_MPI = 8,
    HPCT_FRAMEWORK_ALL = 15,
};

/* HPC_TRAIN_CONFIG is left out above this; the file has it always. */
#define HPCT_MAX_CONFIG_VARIABLE 65536
/* The kernel, and Slurm silently, drop a variable from this size on, its name included. */
#define HPCT_MAX_VARIABLE 131072

/* "tf,torch,jax,mpi", "all" or "none". HPCT_ERR_USAGE naming the word that is not one of them. */
hpct_status hpct_frameworks_parse(const char *text, unsigned *out);

/* Receives each variable; value NULL: it must not be set. A failure ends the emission. */
typedef hpct_status (*hpct_variable_sink)(void *context, const char *name, const char *value);

/* Emits HPC_TRAIN_*, SLURM_TMPDIR, TMPDIR and the frameworks' variables. `json` is the config's
 * JSON text, `file` where it was written. *dropped is set to the name of a framework's variable
 * that was left out because it would be too long, else to NULL. TF_CONFIG: the form TensorFlow's
 * TFConfigClusterResolver reads; torch: that of init_method env:// and of torchrun; JAX: the
 * arguments of jax.distributed.initialize that it takes from variables. */
hpct_status hpct_variables_emit(const hpct_config *config, unsigned frameworks, const char *json,
                                const char *file, hpct_variable_sink sink, void *context,
                                const char **dropped);

/* Every name that hpct_variables_emit may set, NULL at the end; for taking them away again. */
extern const char *const hpct_variable_names[];

#endif
