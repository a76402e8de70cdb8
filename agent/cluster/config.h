/* agent/cluster/config.h - what one process knows of its cluster: who takes part, where, who am I.
 * Written by the plugin as JSON (design: HPC_TRAIN_CONFIG), read here by the agent.
 * Knows nothing of SPANK, MPI or tensors; depends on jansson alone. */
#ifndef HPCT_CLUSTER_CONFIG_H
#define HPCT_CLUSTER_CONFIG_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum hpct_config_source {
    HPCT_CONFIG_PLUGIN, /* HPC_TRAIN_CONFIG or HPC_TRAIN_CONFIG_FILE */
    HPCT_CONFIG_SLURM,  /* SLURM_* of a step started without the plugin */
    HPCT_CONFIG_MPI,    /* OMPI_COMM_WORLD_* of mpirun, or PMI variables */
    HPCT_CONFIG_ALONE,
} hpct_config_source;

typedef struct hpct_config_node {
    char *name;
    int tasks;
    int gpus; /* per node, 0 when unknown */
} hpct_config_node;

/* Roles are given out by rank in the order of the list: the first `count` ranks have the first. */
typedef struct hpct_config_role {
    char *name; /* "worker" */
    int count;
} hpct_config_role;

typedef struct hpct_config {
    hpct_config_source source;
    char *job; /* "42.0" (job.step); NULL outside Slurm */
    int rank, size;
    int local_rank, local_size;
    int node_rank, num_nodes;
    char *role; /* "worker" */
    int role_index;
    hpct_config_role *roles; /* [num_roles], counts sum to size */
    int num_roles;
    hpct_config_node *nodes; /* [num_nodes]; NULL for MPI and ALONE */
    char **addresses;        /* [size], by rank, "host:port"; NULL when nobody said */
    char *gpu;               /* the task's own GPU as CUDA_VISIBLE_DEVICES would name it, or NULL */
    char *tmpdir;            /* job directory on the node's own disk, or NULL */
    char *data;              /* where the first staged entry lies, or NULL */
} hpct_config;

/* Where variables are looked up: the process's own environment, a step's, or a test's. */
typedef struct hpct_environment {
    const char *(*get)(void *context, const char *name); /* NULL when not set */
    void *context;
} hpct_environment;

/* Reads the calling process's config from its environment, in the order of hpct_config_source, with
 * one exception: where mpirun's own variables disagree with the others, mpirun is the nearer
 * launcher and they win.
 * *out is the caller's, to be freed with hpct_config_free. HPCT_ERR_CONFIG, naming the variable or
 * file and what is wrong with it, when something is there that cannot be understood. */
hpct_status hpct_config_read(hpct_config **out);
hpct_status hpct_config_read_from(const hpct_environment *environment, hpct_config **out);
void hpct_config_free(hpct_config *config);

/* The config as the one-line JSON text of HPC_TRAIN_CONFIG (to be freed), and back. `origin` names
 * the variable or file in messages. Parsing checks that everything agrees with everything else:
 * rank with role and index, nodes with local_rank, list lengths. */
hpct_status hpct_config_to_json(const hpct_config *config, char **text);
hpct_status hpct_config_from_json(const char *text, size_t size, const char *origin,
                                  hpct_config **out);

#endif
