/* Builds a cluster from SLURM_STEP_*, and configs from a cluster. */
#include "base/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/components.h"
#include "base/cluster/hostfile.h"
#include "base/cluster/nodelist.h"
#include "base/cluster/tasks.h"
#include "base/number.h"
#include "base/status.h"

static hpct_status need(const hpct_cluster_environment *environment, const char *name,
                        const char **value)
{
    *value = environment->get(environment->context, name);
    if (*value == NULL || **value == '\0')
        return hpct_fail(HPCT_ERR_CONFIG, "%s is not set: is this a step of srun?", name);
    return HPCT_OK;
}

/* In a step over several components Slurm lists the nodes sorted by name, but numbers them
 * component by component, beginning with that of rank 0. */
static hpct_status order_by_rank(hpct_cluster *cluster, int *tasks, int num_nodes, int *placed,
                                 int size)
{
    int done = 0;
    int *fresh = malloc((size_t) num_nodes * sizeof *fresh); /* a node's number, by its index */
    int *old_tasks = malloc((size_t) num_nodes * sizeof *old_tasks);
    char **names = malloc((size_t) num_nodes * sizeof *names);
    if (fresh == NULL || old_tasks == NULL || names == NULL) {
        free(fresh);
        free(old_tasks);
        free(names);
        return hpct_fail_memory((size_t) num_nodes * sizeof *names);
    }
    memcpy(old_tasks, tasks, (size_t) num_nodes * sizeof *tasks);
    for (int i = 0; i < num_nodes; i++)
        fresh[i] = -1;
    for (int rank = 0; rank < size; rank++) {
        int place = placed[rank];
        if (fresh[place] < 0) { /* every node has a task, so each gets a number */
            names[done] = cluster->names[place];
            tasks[done] = old_tasks[place];
            fresh[place] = done++;
        }
        placed[rank] = fresh[place];
    }
    free(cluster->names);
    cluster->names = names;
    free(fresh);
    free(old_tasks);
    return HPCT_OK;
}

/* Whether the step spans several components; HPCT_ERR_CONFIG if Slurm's counts are inconsistent
 * with that. */
static hpct_status is_spanned(const hpct_cluster_environment *environment,
                              const hpct_cluster *cluster, int num_nodes, long size,
                              long slurm_tasks, bool *spanned)
{
    *spanned = slurm_tasks < size;
    if (slurm_tasks <= 0)
        return hpct_cluster_components_spanned(environment, cluster->names, num_nodes, spanned);
    if (slurm_tasks > size)
        return hpct_fail(
            HPCT_ERR_CONFIG,
            "Slurm counts %ld tasks, SLURM_STEP_TASKS_PER_NODE %ld: do not set SLURM_* "
            "variables for srun",
            slurm_tasks, size);
    return HPCT_OK;
}

/* Node of each rank in a layout that follows no rule; NULL without a map. */
static hpct_status read_places(const hpct_cluster_environment *environment,
                               const hpct_cluster *cluster, const int *tasks, int num_nodes,
                               int size, bool spanned, int **placed)
{
    HPCT_TRY(hpct_cluster_map_place(environment, tasks, num_nodes, placed));
    if (*placed != NULL)
        return HPCT_OK;
    if (spanned)
        return hpct_cluster_components_place(environment, cluster->names, tasks, num_nodes, placed);
    const char *file = environment->get(environment->context, "SLURM_HOSTFILE");
    const char *list = environment->get(environment->context, "SLURM_ARBITRARY_NODELIST");
    if (file != NULL)
        return hpct_cluster_hostfile_read(file, cluster->names, num_nodes, size, placed);
    return list == NULL ? HPCT_OK
                        : hpct_cluster_hostlist_read(list, "SLURM_ARBITRARY_NODELIST",
                                                     cluster->names, num_nodes, size, placed);
}

static hpct_status read_layout(const hpct_cluster_environment *environment, long slurm_tasks,
                               hpct_cluster *cluster, int num_nodes)
{
    const char *text = NULL;
    int *tasks = NULL, *placed = NULL, size = 0;
    bool spanned = false;
    hpct_cluster_distribution distribution;
    HPCT_TRY(need(environment, "SLURM_STEP_TASKS_PER_NODE", &text));
    hpct_status status = hpct_cluster_tasks_expand(text, num_nodes, &tasks);
    if (status != HPCT_OK)
        return hpct_fail_within(status, "SLURM_STEP_TASKS_PER_NODE");
    for (int node = 0; node < num_nodes; node++)
        size += tasks[node];
    status = is_spanned(environment, cluster, num_nodes, size, slurm_tasks, &spanned);
    if (status != HPCT_OK)
        goto end;
    status = hpct_cluster_distribution_parse(
        environment->get(environment->context, "SLURM_DISTRIBUTION"),
        environment->get(environment->context, "SLURM_DIST_PLANESIZE"), &distribution);
    if (status != HPCT_OK) {
        hpct_fail_within(status, "SLURM_DISTRIBUTION");
        goto end;
    }
    if (spanned) /* the variable is that of some component */
        distribution.kind = HPCT_CLUSTER_DISTRIBUTION_ARBITRARY;
    if (distribution.kind == HPCT_CLUSTER_DISTRIBUTION_ARBITRARY)
        status = read_places(environment, cluster, tasks, num_nodes, size, spanned, &placed);
    if (status == HPCT_OK && spanned)
        status = order_by_rank(cluster, tasks, num_nodes, placed, size);
    cluster->spans_components = spanned;
    if (status == HPCT_OK)
        status = hpct_cluster_layout_make(tasks, num_nodes, distribution, placed, &cluster->layout);
end:
    free(placed);
    free(tasks);
    return status;
}

hpct_status hpct_cluster_from_slurm(const hpct_cluster_environment *environment, long slurm_tasks,
                                    hpct_cluster *out)
{
    const char *text = NULL;
    int num_nodes = 0;
    hpct_cluster cluster = {0};
    HPCT_TRY(need(environment, "SLURM_STEP_NODELIST", &text));
    hpct_status status = hpct_cluster_nodelist_expand(text, &cluster.names, &num_nodes);
    if (status != HPCT_OK)
        return hpct_fail_within(status, "SLURM_STEP_NODELIST");
    status = read_layout(environment, slurm_tasks, &cluster, num_nodes);
    if (status != HPCT_OK) {
        hpct_cluster_names_free(cluster.names, num_nodes);
        return status;
    }
    *out = cluster;
    return HPCT_OK;
}

hpct_status hpct_cluster_set_hosts(hpct_cluster *cluster,
                                   const hpct_cluster_environment *environment,
                                   hpct_cluster_address_lookup lookup)
{
    hpct_cluster_names_free(cluster->hosts, cluster->layout.num_nodes);
    cluster->hosts = NULL;
    return hpct_cluster_hosts_find(environment, cluster->names, cluster->layout.num_nodes, lookup,
                                   &cluster->hosts);
}

hpct_status hpct_cluster_set_ports(hpct_cluster *cluster,
                                   const hpct_cluster_environment *environment,
                                   const hpct_cluster_port_range *range,
                                   hpct_cluster_port_range otherwise, uint32_t job, uint32_t step,
                                   int choice, int *choices)
{
    int max = hpct_cluster_layout_max_tasks(&cluster->layout);
    int *ports = calloc((size_t) max, sizeof *ports);
    if (ports == NULL)
        return hpct_fail_memory((size_t) max * sizeof *ports);
    int count = 0, base = 0;
    hpct_status status = HPCT_OK;
    const char *reserved = environment->get(environment->context, "SLURM_STEP_RESV_PORTS");
    if (range == NULL && !cluster->spans_components && reserved != NULL && *reserved != '\0')
        status = hpct_cluster_ports_reserved(reserved, ports, max, &count);
    if (choices != NULL)
        *choices = 1;
    if (status == HPCT_OK && count < max) {
        const hpct_cluster_port_range from = range != NULL ? *range : otherwise;
        status = hpct_cluster_port_base(from, job, step, max, choice, &base);
        if (choices != NULL)
            *choices = hpct_cluster_port_choices(from, max);
        for (int i = 0; status == HPCT_OK && i < max; i++)
            ports[i] = base + i;
    }
    if (status != HPCT_OK) {
        free(ports);
        return status;
    }
    free(cluster->ports);
    cluster->ports = ports;
    return HPCT_OK;
}

int hpct_cluster_spare_port(const hpct_cluster *cluster,
                            const hpct_cluster_environment *environment,
                            const hpct_cluster_port_range *range, hpct_cluster_port_range otherwise)
{
    const int max = hpct_cluster_layout_max_tasks(&cluster->layout);
    const int *ports = cluster->ports;
    const char *reserved = environment->get(environment->context, "SLURM_STEP_RESV_PORTS");
    int spare = ports[0], count = 0;
    if (range == NULL && reserved != NULL && *reserved != '\0') {
        int *all = calloc((size_t) max + 1, sizeof *all);
        if (all != NULL && hpct_cluster_ports_reserved(reserved, all, max + 1, &count) == HPCT_OK &&
            all[0] == ports[0]) {
            spare = count > max ? all[max] : ports[0];
            free(all);
            return spare;
        }
        free(all);
    }
    const hpct_cluster_port_range from = range != NULL ? *range : otherwise;
    const int high = from.single ? HPCT_CLUSTER_HIGHEST_PORT : from.high;
    /* the step's block extends to the next multiple */
    if (ports[max - 1] + 1 <= high && (from.single || max % HPCT_CLUSTER_PORT_BLOCK != 0))
        spare = ports[max - 1] + 1;
    return spare;
}

/* "HOST:PORT", with IPv6 addresses in brackets. */
static void format_host(const hpct_cluster *cluster, int node, int port, char *text, size_t size)
{
    const char *host = cluster->hosts != NULL ? cluster->hosts[node] : cluster->names[node];
    snprintf(text, size, strchr(host, ':') == NULL ? "%s:%d" : "[%s]:%d", host, port);
}

char *hpct_cluster_hosts(const hpct_cluster *cluster, int port)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    for (int i = 0; i < cluster->layout.num_nodes; i++) {
        char line[HPCT_CLUSTER_MAX_NODE_NAME + 16];
        format_host(cluster, i, port, line, sizeof line);
        fprintf(file, "%s\n", line);
    }
    if (ferror(file) != 0 || fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *format_address(const hpct_cluster *cluster, int rank)
{
    char text[HPCT_CLUSTER_MAX_NODE_NAME + 16];
    format_host(cluster, cluster->layout.node[rank], cluster->ports[cluster->layout.local[rank]],
                text, sizeof text);
    return strdup(text);
}

static hpct_status set_roles(hpct_cluster_config *config, const hpct_cluster_roles *given)
{
    const hpct_cluster_roles all_workers = {.count = 0};
    hpct_cluster_roles roles;
    HPCT_TRY(hpct_cluster_roles_fit(given == NULL ? &all_workers : given, config->size, &roles));
    int own = hpct_cluster_roles_of(&roles, config->rank, &config->role_index);
    config->role = strdup(roles.list[own].name);
    config->roles = calloc((size_t) roles.count, sizeof *config->roles);
    if (config->role == NULL || config->roles == NULL)
        return hpct_fail_memory(0);
    for (; config->num_roles < roles.count; config->num_roles++) {
        hpct_cluster_config_role *role = &config->roles[config->num_roles];
        role->count = roles.list[config->num_roles].count;
        role->name = strdup(roles.list[config->num_roles].name);
        if (role->name == NULL)
            return hpct_fail_memory(0);
    }
    return HPCT_OK;
}

static hpct_status set_nodes(hpct_cluster_config *config, const hpct_cluster *cluster,
                             const int *gpus)
{
    config->nodes = calloc((size_t) config->num_nodes, sizeof *config->nodes);
    if (config->nodes == NULL)
        return hpct_fail_memory(0);
    for (int node = 0; node < config->num_nodes; node++) {
        config->nodes[node].tasks = cluster->layout.tasks[node];
        config->nodes[node].gpus = gpus == NULL ? 0 : gpus[node];
        config->nodes[node].name = strdup(cluster->names[node]);
        if (config->nodes[node].name == NULL)
            return hpct_fail_memory(0);
    }
    return HPCT_OK;
}

static hpct_status set_addresses(hpct_cluster_config *config, const hpct_cluster *cluster)
{
    config->addresses = calloc((size_t) config->size, sizeof *config->addresses);
    if (config->addresses == NULL)
        return hpct_fail_memory(0);
    for (int rank = 0; rank < config->size; rank++) {
        config->addresses[rank] = format_address(cluster, rank);
        if (config->addresses[rank] == NULL)
            return hpct_fail_memory(0);
    }
    return HPCT_OK;
}

hpct_status hpct_cluster_config_of(const hpct_cluster *cluster, int rank, uint32_t job,
                                   uint32_t step, const hpct_cluster_roles *roles, const int *gpus,
                                   hpct_cluster_config **out)
{
    const hpct_cluster_layout *layout = &cluster->layout;
    char name[32];
    hpct_cluster_config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return hpct_fail_memory(sizeof *config);
    config->rank = rank;
    config->size = layout->size;
    config->node_rank = layout->node[rank];
    config->num_nodes = layout->num_nodes;
    config->local_rank = layout->local[rank];
    config->local_size = layout->tasks[config->node_rank];
    snprintf(name, sizeof name, "%u.%u", job, step);
    config->job = strdup(name);
    hpct_status status = config->job == NULL ? hpct_fail_memory(0) : set_roles(config, roles);
    if (status == HPCT_OK)
        status = set_nodes(config, cluster, gpus);
    if (status == HPCT_OK && cluster->ports != NULL)
        status = set_addresses(config, cluster);
    if (status != HPCT_OK) {
        hpct_cluster_config_free(config);
        return status;
    }
    *out = config;
    return HPCT_OK;
}

void hpct_cluster_free(hpct_cluster *cluster)
{
    hpct_cluster_names_free(cluster->names, cluster->layout.num_nodes);
    hpct_cluster_names_free(cluster->hosts, cluster->layout.num_nodes);
    hpct_cluster_layout_free(&cluster->layout);
    free(cluster->ports);
    *cluster = (hpct_cluster){0};
}

/* Index of a node in a list, or -1; *count: length of the list, 0 if malformed. */
static int find_node(const char *list, const char *node, int *count)
{
    char **names = NULL;
    int place = -1;
    *count = 0;
    if (list == NULL || hpct_cluster_nodelist_expand(list, &names, count) != HPCT_OK)
        return -1;
    for (int i = 0; i < *count && place < 0; i++)
        place = strcmp(names[i], node) == 0 ? i : -1;
    hpct_cluster_names_free(names, *count);
    return place;
}

/* Counted over all components, as in a step over all of them. */
static int find_in_components(const hpct_cluster_environment *environment, uint32_t job,
                              const char *node, int components)
{
    for (int i = 0, before = 0, count = 0; i < components; i++, before += count) {
        char name[64];
        long number = 0;
        snprintf(name, sizeof name, "SLURM_JOB_NODELIST_HET_GROUP_%d", i);
        int place = find_node(environment->get(environment->context, name), node, &count);
        snprintf(name, sizeof name, "SLURM_JOB_ID_HET_GROUP_%d", i);
        const char *id = environment->get(environment->context, name);
        if (count == 0 || id == NULL || !hpct_number_parse(id, 0, UINT32_MAX, &number))
            return -1;
        if ((uint32_t) number == job)
            return place < 0 ? -1 : before + place;
    }
    return -1;
}

uint32_t hpct_cluster_node_in_job(const hpct_cluster_environment *environment, uint32_t job,
                                  uint32_t in_step)
{
    const char *size = environment->get(environment->context, "SLURM_HET_SIZE");
    const char *own = environment->get(environment->context, "SLURMD_NODENAME");
    long components = 0;
    int place = -1, count = 0;
    if (own != NULL && size == NULL)
        place =
            find_node(environment->get(environment->context, "SLURM_JOB_NODELIST"), own, &count);
    else if (own != NULL && hpct_number_parse(size, 1, INT16_MAX, &components))
        place = find_in_components(environment, job, own, (int) components);
    return place < 0 ? in_step : (uint32_t) place;
}
