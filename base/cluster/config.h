/* base/cluster/config.h - a process's view of its cluster: roles, addresses, rank. Written by the
 * plugin as JSON (HPC_TRAIN_CONFIG), read by the agent. Independent of SPANK, MPI and tensors; uses
 * jansson only. */
#ifndef HPCT_BASE_CLUSTER_CONFIG_H
#define HPCT_BASE_CLUSTER_CONFIG_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum hpct_cluster_config_source {
    HPCT_CLUSTER_CONFIG_PLUGIN, /* HPC_TRAIN_CONFIG or HPC_TRAIN_CONFIG_FILE */
    HPCT_CLUSTER_CONFIG_SLURM,  /* SLURM_* of a step started without the plugin */
    HPCT_CLUSTER_CONFIG_MPI,    /* OMPI_COMM_WORLD_* of mpirun, or PMI variables */
    HPCT_CLUSTER_CONFIG_ALONE,
} hpct_cluster_config_source;

typedef struct hpct_cluster_config_node {
    char *name;
    int tasks;
    int gpus; /* per node, 0 if unknown */
} hpct_cluster_config_node;

/* Roles are assigned by rank in the order of the list: the first `count` ranks have the first
 * role. */
typedef struct hpct_cluster_config_role {
    char *name; /* "worker" */
    int count;
} hpct_cluster_config_role;

typedef struct hpct_cluster_config {
    hpct_cluster_config_source source;
    char *job; /* "42.0" (job.step); NULL outside Slurm */
    int rank, size;
    int local_rank, local_size;
    int node_rank, num_nodes;
    char *role; /* "worker" */
    int role_index;
    hpct_cluster_config_role *roles; /* [num_roles], counts sum to size */
    int num_roles;
    hpct_cluster_config_node *nodes; /* [num_nodes]; NULL for MPI and ALONE */
    char **addresses;                /* [size], by rank, "host:port"; NULL if unknown */
    char *gpu;                       /* the task's GPU as in CUDA_VISIBLE_DEVICES, or NULL */
    char *tmpdir;                    /* job directory on the local disk, or NULL */
    char *data;                      /* path of the first staged entry, or NULL */
} hpct_cluster_config;

/* Source of variables: the environment of the process, of a step, or of a test. */
typedef struct hpct_cluster_environment {
    const char *(*get)(void *context, const char *name); /* NULL if not set */
    void *context;
} hpct_cluster_environment;

/* The process's own. */
extern const hpct_cluster_environment hpct_cluster_environment_own;

/* NULL if not set or empty. */
const char *hpct_cluster_environment_get(const hpct_cluster_environment *environment,
                                         const char *name);

/* `otherwise` unless the variable is a number from 0 to `max`. */
long hpct_cluster_environment_number(const hpct_cluster_environment *environment, const char *name,
                                     long max, long otherwise);

/* Reads the process's config from its environment, in the order of hpct_cluster_config_source; but
 * mpirun's variables have precedence if they disagree, as mpirun is the inner launcher. *out is
 * freed with hpct_cluster_config_free. Returns HPCT_ERR_CONFIG, naming variable or file and the
 * reason, if malformed. */
hpct_status hpct_cluster_config_read(hpct_cluster_config **out);
hpct_status hpct_cluster_config_read_from(const hpct_cluster_environment *environment,
                                          hpct_cluster_config **out);
void hpct_cluster_config_free(hpct_cluster_config *config);

/* Converts a config to the one-line JSON of HPC_TRAIN_CONFIG (freed by the caller) and back.
 * `origin` names variable or file in messages. Parsing checks consistency: rank with role and
 * index, nodes with local_rank, list lengths. */
hpct_status hpct_cluster_config_to_json(const hpct_cluster_config *config, char **text);
hpct_status hpct_cluster_config_from_json(const char *text, size_t size, const char *origin,
                                          hpct_cluster_config **out);

#endif
