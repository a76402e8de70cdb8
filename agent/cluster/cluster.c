/* SLURM_STEP_* to a cluster, a cluster to configs. */
#include "agent/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/hostfile.h"
#include "agent/cluster/nodelist.h"
#include "agent/cluster/tasks.h"
#include "base/status.h"

static hpct_status need(const hpct_environment *environment, const char *name, const char **value)
{
    *value = environment->get(environment->context, name);
    if (*value == NULL || **value == '\0')
        return hpct_fail(HPCT_ERR_CONFIG, "%s is not set: is this a step of srun?", name);
    return HPCT_OK;
}

static hpct_status read_layout(const hpct_environment *environment, hpct_cluster *cluster,
                               int num_nodes)
{
    const char *text = NULL;
    int *tasks = NULL, *placed = NULL;
    hpct_distribution distribution;
    hpct_status status = need(environment, "SLURM_STEP_TASKS_PER_NODE", &text);
    if (status != HPCT_OK)
        return status;
    status = hpct_tasks_expand(text, num_nodes, &tasks);
    if (status != HPCT_OK)
        return hpct_fail_within(status, "SLURM_STEP_TASKS_PER_NODE");
    status = hpct_distribution_parse(environment->get(environment->context, "SLURM_DISTRIBUTION"),
                                     environment->get(environment->context, "SLURM_DIST_PLANESIZE"),
                                     &distribution);
    if (status != HPCT_OK) {
        hpct_fail_within(status, "SLURM_DISTRIBUTION");
        goto end;
    }
    const char *hostfile = environment->get(environment->context, "SLURM_HOSTFILE");
    if (distribution.kind == HPCT_DISTRIBUTION_ARBITRARY && hostfile != NULL) {
        long size = 0;
        for (int node = 0; node < num_nodes; node++)
            size += tasks[node];
        status = hpct_hostfile_read(hostfile, cluster->names, num_nodes, (int) size, &placed);
        if (status != HPCT_OK)
            goto end;
    }
    status = hpct_layout_make(tasks, num_nodes, distribution, placed, &cluster->layout);
end:
    free(placed);
    free(tasks);
    return status;
}

hpct_status hpct_cluster_from_slurm(const hpct_environment *environment, hpct_cluster *out)
{
    const char *text = NULL;
    int num_nodes = 0;
    hpct_cluster cluster = {0};
    hpct_status status = need(environment, "SLURM_STEP_NODELIST", &text);
    if (status != HPCT_OK)
        return status;
    status = hpct_nodelist_expand(text, &cluster.names, &num_nodes);
    if (status != HPCT_OK)
        return hpct_fail_within(status, "SLURM_STEP_NODELIST");
    status = read_layout(environment, &cluster, num_nodes);
    if (status != HPCT_OK) {
        hpct_names_free(cluster.names, num_nodes);
        return status;
    }
    *out = cluster;
    return HPCT_OK;
}

hpct_status hpct_cluster_set_ports(hpct_cluster *cluster, const hpct_environment *environment,
                                   const hpct_port_range *range, hpct_port_range otherwise,
                                   uint32_t job, uint32_t step)
{
    int max = hpct_layout_max_tasks(&cluster->layout);
    int *ports = calloc((size_t) max, sizeof *ports);
    if (ports == NULL)
        return hpct_fail_memory((size_t) max * sizeof *ports);
    int count = 0, base = 0;
    hpct_status status = HPCT_OK;
    const char *reserved = environment->get(environment->context, "SLURM_STEP_RESV_PORTS");
    if (range == NULL && reserved != NULL && *reserved != '\0')
        status = hpct_ports_reserved(reserved, ports, max, &count);
    if (status == HPCT_OK && count < max) {
        status = hpct_port_base(range != NULL ? *range : otherwise, job, step, max, &base);
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

int hpct_cluster_spare_port(const hpct_cluster *cluster, const hpct_environment *environment,
                            const hpct_port_range *range, hpct_port_range otherwise)
{
    const int max = hpct_layout_max_tasks(&cluster->layout);
    const int *ports = cluster->ports;
    const char *reserved = environment->get(environment->context, "SLURM_STEP_RESV_PORTS");
    int spare = ports[0], count = 0;
    if (range == NULL && reserved != NULL && *reserved != '\0') {
        int *all = calloc((size_t) max + 1, sizeof *all);
        if (all != NULL && hpct_ports_reserved(reserved, all, max + 1, &count) == HPCT_OK &&
            all[0] == ports[0]) {
            spare = count > max ? all[max] : ports[0];
            free(all);
            return spare;
        }
        free(all);
    }
    const hpct_port_range from = range != NULL ? *range : otherwise;
    const int high = from.single ? HPCT_HIGHEST_PORT : from.high;
    /* the step's block goes on to the next multiple */
    if (ports[max - 1] + 1 <= high && (from.single || max % HPCT_PORT_BLOCK != 0))
        spare = ports[max - 1] + 1;
    return spare;
}

char *hpct_cluster_hosts(const hpct_cluster *cluster, int port)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    for (int i = 0; i < cluster->layout.num_nodes; i++)
        fprintf(file, "%s:%d\n", cluster->names[i], port);
    if (ferror(file) != 0 || fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *format_address(const hpct_cluster *cluster, int rank)
{
    char text[HPCT_MAX_NODE_NAME + 16];
    int node = cluster->layout.node[rank];
    snprintf(text, sizeof text, "%s:%d", cluster->names[node],
             cluster->ports[cluster->layout.local[rank]]);
    return strdup(text);
}

hpct_status hpct_cluster_config(const hpct_cluster *cluster, int rank, uint32_t job, uint32_t step,
                                const int *gpus, hpct_config **out)
{
    const hpct_layout *layout = &cluster->layout;
    char name[32];
    hpct_config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return hpct_fail_memory(sizeof *config);
    config->rank = rank;
    config->size = layout->size;
    config->node_rank = layout->node[rank];
    config->num_nodes = layout->num_nodes;
    config->local_rank = layout->local[rank];
    config->local_size = layout->tasks[config->node_rank];
    config->role_index = rank;
    snprintf(name, sizeof name, "%u.%u", job, step);
    config->job = strdup(name);
    config->role = strdup("worker");
    config->roles = calloc(1, sizeof *config->roles);
    config->nodes = calloc((size_t) layout->num_nodes, sizeof *config->nodes);
    if (config->job == NULL || config->role == NULL || config->roles == NULL ||
        config->nodes == NULL)
        goto fail;
    config->num_roles = 1;
    config->roles[0].count = layout->size;
    config->roles[0].name = strdup("worker");
    if (config->roles[0].name == NULL)
        goto fail;
    for (int node = 0; node < layout->num_nodes; node++) {
        config->nodes[node].tasks = layout->tasks[node];
        config->nodes[node].gpus = gpus == NULL ? 0 : gpus[node];
        config->nodes[node].name = strdup(cluster->names[node]);
        if (config->nodes[node].name == NULL)
            goto fail;
    }
    if (cluster->ports != NULL) {
        config->addresses = calloc((size_t) layout->size, sizeof *config->addresses);
        if (config->addresses == NULL)
            goto fail;
        for (int i = 0; i < layout->size; i++) {
            config->addresses[i] = format_address(cluster, i);
            if (config->addresses[i] == NULL)
                goto fail;
        }
    }
    *out = config;
    return HPCT_OK;
fail:
    hpct_config_free(config);
    return hpct_fail_memory(0);
}

void hpct_cluster_free(hpct_cluster *cluster)
{
    hpct_names_free(cluster->names, cluster->layout.num_nodes);
    hpct_layout_free(&cluster->layout);
    free(cluster->ports);
    *cluster = (hpct_cluster){0};
}
