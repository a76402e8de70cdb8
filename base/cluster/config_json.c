/* The JSON form of a config: written for HPC_TRAIN_CONFIG, and read back with all possible
 * consistency checks. The order of the roles in "cluster" is the order in which they are assigned
 * to ranks. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/config.h"
#include "base/cluster/nodelist.h"
#include "base/cluster/tasks.h"
#include "base/status.h"

#define VERSION 1

/* ---- writing ---- */

/* {"worker": ["host:port", …], …} */
static json_t *make_cluster(const hpct_cluster_config *config)
{
    json_t *cluster = json_object();
    int rank = 0;
    for (int i = 0; i < config->num_roles; i++) {
        json_t *list = json_array();
        if (json_object_set_new(cluster, config->roles[i].name, list) != 0)
            goto fail;
        for (int n = 0; n < config->roles[i].count; n++) {
            if (json_array_append_new(list, json_string(config->addresses[rank++])) != 0)
                goto fail;
        }
    }
    return cluster;
fail:
    json_decref(cluster);
    return NULL;
}

static json_t *make_nodes(const hpct_cluster_config *config)
{
    json_t *nodes = json_array();
    for (int i = 0; i < config->num_nodes; i++) {
        const hpct_cluster_config_node *node = &config->nodes[i];
        if (json_array_append_new(nodes, json_pack("{s:s, s:i, s:i}", "name", node->name, "tasks",
                                                   node->tasks, "gpus", node->gpus)) != 0) {
            json_decref(nodes);
            return NULL;
        }
    }
    return nodes;
}

/* JSON cannot represent a path that is not UTF-8; the path's own variable has it. */
static void set_optional(json_t *object, const char *key, const char *text)
{
    json_t *value = text == NULL ? NULL : json_string(text);
    if (value != NULL)
        json_object_set_new(object, key, value);
}

hpct_status hpct_cluster_config_to_json(const hpct_cluster_config *config, char **text)
{
    if (config->addresses == NULL || config->nodes == NULL || config->job == NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "a config without addresses cannot be written");
    json_t *cluster = make_cluster(config), *nodes = make_nodes(config);
    /* "o" takes ownership of the references, also if packing fails */
    json_t *all = json_pack("{s:i, s:s, s:o, s:{s:s, s:i}, s:i, s:i, s:i, s:o}", "version", VERSION,
                            "job", config->job, "cluster", cluster, "task", "type", config->role,
                            "index", config->role_index, "rank", config->rank, "local_rank",
                            config->local_rank, "node_rank", config->node_rank, "nodes", nodes);
    if (all == NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "the config of job %s cannot be written as JSON",
                         config->job);
    set_optional(all, "gpu", config->gpu);
    set_optional(all, "tmpdir", config->tmpdir);
    set_optional(all, "data", config->data);
    *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return *text != NULL ? HPCT_OK : hpct_fail_memory(0);
}

/* ---- reading ---- */

typedef struct reading {
    const char *origin;
    hpct_cluster_config *config;
} reading;

static hpct_status wrong(const reading *r, const char *what)
{
    return hpct_fail(HPCT_ERR_CONFIG, "%s: %s", r->origin, what);
}

static hpct_status get_int(const reading *r, const json_t *object, const char *key, int max,
                           int *value)
{
    const json_t *number = json_object_get(object, key);
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        json_integer_value(number) > max)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: \"%s\" must be a number from 0 to %d", r->origin,
                         key, max);
    *value = (int) json_integer_value(number);
    return HPCT_OK;
}

/* A string without NUL bytes; *value remains NULL if it is absent and optional. */
static hpct_status get_string(const reading *r, const json_t *object, const char *key, bool needed,
                              char **value)
{
    const json_t *text = json_object_get(object, key);
    if (!needed && (text == NULL || json_is_null(text)))
        return HPCT_OK;
    if (!json_is_string(text) || strlen(json_string_value(text)) != json_string_length(text))
        return hpct_fail(HPCT_ERR_CONFIG, "%s: \"%s\" must be a string", r->origin, key);
    *value = strdup(json_string_value(text));
    return *value != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static bool is_address(const json_t *text)
{
    const char *string = json_string_value(text);
    if (string == NULL || strlen(string) != json_string_length(text))
        return false;
    const char *colon = strrchr(string, ':');
    return colon != NULL && colon > string &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(colon + 1) <= 5 &&
           atoi(colon + 1) > 0 && atoi(colon + 1) <= 65535;
}

static hpct_status read_cluster(const reading *r, json_t *cluster)
{
    hpct_cluster_config *config = r->config;
    const char *name = NULL;
    json_t *list = NULL, *address = NULL;
    size_t index = 0, size = 0, rank = 0;
    if (!json_is_object(cluster) || json_object_size(cluster) == 0)
        return wrong(r, "\"cluster\" must name the tasks of at least one role");
    config->roles = calloc(json_object_size(cluster), sizeof *config->roles);
    if (config->roles == NULL)
        return hpct_fail_memory(0);
    json_object_foreach (cluster, name, list) {
        hpct_cluster_config_role *role = &config->roles[config->num_roles];
        if (!json_is_array(list) || json_array_size(list) > HPCT_CLUSTER_MAX_TASKS)
            return wrong(r, "\"cluster\" must hold lists of addresses");
        role->name = strdup(name);
        if (role->name == NULL)
            return hpct_fail_memory(0);
        role->count = (int) json_array_size(list);
        size += json_array_size(list);
        config->num_roles++;
    }
    if (size == 0 || size > HPCT_CLUSTER_MAX_TASKS)
        return wrong(r, "\"cluster\" has no tasks, or too many");
    config->addresses = calloc(size, sizeof *config->addresses);
    if (config->addresses == NULL)
        return hpct_fail_memory(size * sizeof *config->addresses);
    config->size = (int) size;
    json_object_foreach (cluster, name, list) {
        json_array_foreach(list, index, address)
        {
            if (!is_address(address))
                return wrong(r, "\"cluster\" must hold addresses as host:port");
            config->addresses[rank] = strdup(json_string_value(address));
            if (config->addresses[rank++] == NULL)
                return hpct_fail_memory(0);
        }
    }
    return HPCT_OK;
}

static hpct_status read_nodes(const reading *r, const json_t *nodes)
{
    hpct_cluster_config *config = r->config;
    size_t count = json_array_size(nodes), index = 0;
    const json_t *entry = NULL;
    long tasks = 0;
    if (count == 0 || count > HPCT_CLUSTER_MAX_NODES)
        return wrong(r, "\"nodes\" must be a list of nodes");
    config->nodes = calloc(count, sizeof *config->nodes);
    if (config->nodes == NULL)
        return hpct_fail_memory(count * sizeof *config->nodes);
    config->num_nodes = (int) count;
    json_array_foreach(nodes, index, entry)
    {
        hpct_cluster_config_node *node = &config->nodes[index];
        HPCT_TRY(get_string(r, entry, "name", true, &node->name));
        HPCT_TRY(get_int(r, entry, "tasks", HPCT_CLUSTER_MAX_TASKS, &node->tasks));
        HPCT_TRY(get_int(r, entry, "gpus", HPCT_CLUSTER_MAX_TASKS, &node->gpus));
        tasks += node->tasks;
    }
    if (tasks != config->size)
        return wrong(r, "the tasks of \"nodes\" are not those of \"cluster\"");
    return HPCT_OK;
}

/* Reads the task's rank, role and node, and checks that they are consistent. */
static hpct_status read_task(const reading *r, const json_t *all)
{
    hpct_cluster_config *config = r->config;
    const json_t *task = json_object_get(all, "task");
    HPCT_TRY(get_string(r, task, "type", true, &config->role));
    HPCT_TRY(get_int(r, task, "index", HPCT_CLUSTER_MAX_TASKS, &config->role_index));
    HPCT_TRY(get_int(r, all, "rank", config->size - 1, &config->rank));
    HPCT_TRY(get_int(r, all, "node_rank", config->num_nodes - 1, &config->node_rank));
    config->local_size = config->nodes[config->node_rank].tasks;
    HPCT_TRY(get_int(r, all, "local_rank", HPCT_CLUSTER_MAX_TASKS, &config->local_rank));
    if (config->local_rank >= config->local_size)
        return wrong(r, "\"local_rank\" is not below the tasks of its node");
    int first = 0;
    for (int i = 0; i < config->num_roles; first += config->roles[i++].count) {
        if (strcmp(config->roles[i].name, config->role) == 0)
            return config->role_index < config->roles[i].count &&
                           first + config->role_index == config->rank
                       ? HPCT_OK
                       : wrong(r, "\"task\" and \"rank\" do not agree");
    }
    return wrong(r, "\"task\" has a type that \"cluster\" does not name");
}

static hpct_status read_all(const reading *r, const json_t *all)
{
    int version = 0;
    HPCT_TRY(get_int(r, all, "version", 1000000, &version));
    if (version != VERSION)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s: version %d is not understood, only %d is: the "
                         "plugin and this program belong to different releases",
                         r->origin, version, VERSION);
    HPCT_TRY(get_string(r, all, "job", true, &r->config->job));
    HPCT_TRY(read_cluster(r, json_object_get(all, "cluster")));
    HPCT_TRY(read_nodes(r, json_object_get(all, "nodes")));
    HPCT_TRY(read_task(r, all));
    HPCT_TRY(get_string(r, all, "gpu", false, &r->config->gpu));
    HPCT_TRY(get_string(r, all, "tmpdir", false, &r->config->tmpdir));
    return get_string(r, all, "data", false, &r->config->data);
}

hpct_status hpct_cluster_config_from_json(const char *text, size_t size, const char *origin,
                                          hpct_cluster_config **out)
{
    json_error_t error;
    json_t *all = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (all == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: not JSON: %s (line %d)", origin, error.text,
                         error.line);
    reading r = {.origin = origin, .config = calloc(1, sizeof *r.config)};
    hpct_status status = r.config == NULL ? hpct_fail_memory(sizeof *r.config) : read_all(&r, all);
    json_decref(all);
    if (status != HPCT_OK) {
        hpct_cluster_config_free(r.config);
        return status;
    }
    r.config->source = HPCT_CLUSTER_CONFIG_PLUGIN;
    *out = r.config;
    return HPCT_OK;
}
