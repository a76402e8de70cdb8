/* Emits a config as environment variables. */
#include "base/cluster/variables.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/nodelist.h"
#include "base/status.h"

const char *const hpct_cluster_variable_names[] = {
    "HPC_TRAIN_CONFIG",
    "HPC_TRAIN_CONFIG_FILE",
    "HPC_TRAIN_RANK",
    "HPC_TRAIN_WORLD_SIZE",
    "HPC_TRAIN_LOCAL_RANK",
    "HPC_TRAIN_LOCAL_SIZE",
    "HPC_TRAIN_NODE_RANK",
    "HPC_TRAIN_NUM_NODES",
    "HPC_TRAIN_ROLE",
    "HPC_TRAIN_ROLE_INDEX",
    "HPC_TRAIN_GPU",
    "HPC_TRAIN_DATA",
    "HPC_TRAIN_KEY_FILE",
    "HPC_TRAIN_END_TIME",
    "SLURM_TMPDIR",
    "TMPDIR",
    "TF_CONFIG",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "JAX_COORDINATOR_ADDRESS",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    NULL,
};

hpct_status hpct_cluster_frameworks_parse(const char *text, unsigned *out)
{
    static const struct {
        const char *name;
        unsigned bits;
    } words[] = {
        {"tf", HPCT_CLUSTER_FRAMEWORK_TF},   {"torch", HPCT_CLUSTER_FRAMEWORK_TORCH},
        {"jax", HPCT_CLUSTER_FRAMEWORK_JAX}, {"mpi", HPCT_CLUSTER_FRAMEWORK_MPI},
        {"all", HPCT_CLUSTER_FRAMEWORK_ALL}, {"none", 0},
    };
    unsigned bits = 0;
    for (const char *p = text;; p++) {
        size_t size = strcspn(p, ","), i = 0;
        while (i < sizeof words / sizeof *words &&
               (strlen(words[i].name) != size || strncmp(words[i].name, p, size) != 0))
            i++;
        if (i == sizeof words / sizeof *words)
            return hpct_fail(
                HPCT_ERR_USAGE,
                "'%.*s' is not a framework: write a list of tf, torch, jax, mpi, or all, or "
                "none",
                size > 100 ? 100 : (int) size, p);
        bits |= words[i].bits;
        p += size;
        if (*p == '\0')
            break;
    }
    *out = bits;
    return HPCT_OK;
}

typedef struct emission {
    hpct_cluster_variable_sink sink;
    void *context;
    hpct_status status;
} emission;

static void emit(emission *e, const char *name, const char *value)
{
    if (e->status == HPCT_OK)
        e->status = e->sink(e->context, name, value);
}

static void put_number(emission *e, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    emit(e, name, text);
}

/* A value that is too long is omitted, not truncated. */
static bool fits(const char *name, const char *value)
{
    return strlen(name) + 1 + strlen(value) + 1 < HPCT_CLUSTER_MAX_VARIABLE;
}

/* TensorFlow's evaluator is not part of the cluster: its TF_CONFIG has its own task type, and the
 * others' do not list it (they would wait for it). */
static char *make_tf_config(const hpct_cluster_config *config)
{
    json_t *cluster = json_object();
    int rank = 0;
    for (int i = 0; i < config->num_roles; rank += config->roles[i++].count) {
        if (strcmp(config->roles[i].name, "evaluator") == 0)
            continue;
        json_t *list = json_array();
        for (int n = 0; n < config->roles[i].count; n++)
            json_array_append_new(list, json_string(config->addresses[rank + n]));
        json_object_set_new(cluster, config->roles[i].name, list);
    }
    json_t *all = json_pack("{s:o, s:{s:s, s:i}}", "cluster", cluster, "task", "type", config->role,
                            "index", config->role_index);
    char *text = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

/* Whether the addresses alone, each with quotes and a comma, are too long: then the text is not
 * composed, which takes as long as everything else. */
static bool surely_too_long(const hpct_cluster_config *config)
{
    size_t size = 0;
    for (int rank = 0; rank < config->size && size < 2 * HPCT_CLUSTER_MAX_VARIABLE; rank++)
        size += strlen(config->addresses[rank]) + strlen("\"\",");
    return size >= HPCT_CLUSTER_MAX_VARIABLE + HPCT_CLUSTER_MAX_NODE_NAME +
                       16; /* without an evaluator's address */
}

static void put_tf(emission *e, const hpct_cluster_config *config, const char **dropped)
{
    if (surely_too_long(config)) {
        emit(e, "TF_CONFIG", NULL);
        *dropped = "TF_CONFIG";
        return;
    }
    char *text = make_tf_config(config);
    if (text == NULL) {
        e->status = hpct_fail_memory(0);
        return;
    }
    bool fit = fits("TF_CONFIG", text);
    emit(e, "TF_CONFIG", fit ? text : NULL);
    if (!fit)
        *dropped = "TF_CONFIG";
    free(text);
}

/* Rank 0 is the rendezvous of torch and JAX. They have no roles: all tasks count. */
static void put_meeting_point(emission *e, const hpct_cluster_config *config, unsigned frameworks)
{
    const char *address = config->addresses[0], *colon = strrchr(address, ':');
    if (frameworks & HPCT_CLUSTER_FRAMEWORK_TORCH) {
        char host[256];
        bool v6 = address[0] == '[';
        snprintf(host, sizeof host, "%.*s", (int) (colon - address) - 2 * v6, address + v6);
        emit(e, "MASTER_ADDR", host);
        emit(e, "MASTER_PORT", colon + 1);
        put_number(e, "RANK", config->rank);
        put_number(e, "WORLD_SIZE", config->size);
        put_number(e, "LOCAL_RANK", config->local_rank);
        put_number(e, "LOCAL_WORLD_SIZE", config->local_size);
        put_number(e, "GROUP_RANK", config->node_rank);
    }
    if (frameworks & HPCT_CLUSTER_FRAMEWORK_JAX) {
        emit(e, "JAX_COORDINATOR_ADDRESS", address);
        put_number(e, "JAX_NUM_PROCESSES", config->size);
        put_number(e, "JAX_PROCESS_ID", config->rank);
    }
}

hpct_status hpct_cluster_variables_emit(const hpct_cluster_config *config, unsigned frameworks,
                                        const char *json, const char *file,
                                        hpct_cluster_variable_sink sink, void *context,
                                        const char **dropped)
{
    emission e = {.sink = sink, .context = context, .status = HPCT_OK};
    *dropped = NULL;
    emit(&e, "HPC_TRAIN_CONFIG", strlen(json) <= HPCT_CLUSTER_MAX_CONFIG_VARIABLE ? json : NULL);
    emit(&e, "HPC_TRAIN_CONFIG_FILE", file);
    put_number(&e, "HPC_TRAIN_RANK", config->rank);
    put_number(&e, "HPC_TRAIN_WORLD_SIZE", config->size);
    put_number(&e, "HPC_TRAIN_LOCAL_RANK", config->local_rank);
    put_number(&e, "HPC_TRAIN_LOCAL_SIZE", config->local_size);
    put_number(&e, "HPC_TRAIN_NODE_RANK", config->node_rank);
    put_number(&e, "HPC_TRAIN_NUM_NODES", config->num_nodes);
    emit(&e, "HPC_TRAIN_ROLE", config->role);
    put_number(&e, "HPC_TRAIN_ROLE_INDEX", config->role_index);
    emit(&e, "HPC_TRAIN_GPU", config->gpu);
    emit(&e, "HPC_TRAIN_DATA", config->data);
    emit(&e, "SLURM_TMPDIR", config->tmpdir);
    emit(&e, "TMPDIR", config->tmpdir);
    if (frameworks & HPCT_CLUSTER_FRAMEWORK_TF)
        put_tf(&e, config, dropped);
    put_meeting_point(&e, config, frameworks);
    return e.status;
}
