/* Computes a task's config. Its layout comes from variables sent by the user's srun, so each task
 * verifies it against slurmstepd's values. */
#include <config.h>

#include "spank/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cluster/cluster.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_GPUS 4096

/* A task's job, and its rank and node over all components. */
typedef struct place {
    uint32_t job;
    long rank, node;
} place;

static hpct_status get_number(const hpct_cluster_environment *environment, const char *name,
                              long max, long *value)
{
    const char *text = hpct_cluster_environment_get(environment, name);
    if (text == NULL || !hpct_number_parse(text, 0, max, value))
        return hpct_fail(HPCT_ERR_CONFIG, "%s is '%.40s', not a number from 0 to %ld", name,
                         text == NULL ? "" : text, max);
    return HPCT_OK;
}

/* In a step over several components SPANK counts within the component, whereas slurmstepd's
 * variables have the first component's job id and count over all. */
static hpct_status find_place(const hpct_spank_task_facts *facts, const hpct_cluster_layout *layout,
                              const hpct_cluster_environment *environment, place *out)
{
    long job = 0;
    *out = (place){.job = facts->job, .rank = facts->rank, .node = facts->node};
    if ((long) facts->total_tasks == layout->size)
        return (long) facts->rank < layout->size
                   ? HPCT_OK
                   : hpct_fail(HPCT_ERR_CONFIG, "Slurm's rank %u is not below its %u tasks",
                               facts->rank, facts->total_tasks);
    HPCT_TRY(get_number(environment, "SLURM_PROCID", layout->size - 1, &out->rank));
    HPCT_TRY(get_number(environment, "SLURM_NODEID", layout->num_nodes - 1, &out->node));
    HPCT_TRY(get_number(environment, "SLURM_JOB_ID", UINT32_MAX, &job));
    out->job = (uint32_t) job;
    if (out->rank >= (long) facts->rank && out->node >= (long) facts->node)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "SLURM_PROCID %ld and SLURM_NODEID %ld are not those of task %u of node "
                     "%u of a component",
                     out->rank, out->node, facts->rank, facts->node);
}

static hpct_status check(const hpct_spank_task_facts *facts, const place *at,
                         const hpct_cluster *cluster, const hpct_cluster_environment *environment)
{
    const hpct_cluster_layout *layout = &cluster->layout;
    const char *name = hpct_cluster_environment_get(environment, "SLURMD_NODENAME");
    int node = layout->node[at->rank];
    if (at->node != node || (long) facts->local_rank != layout->local[at->rank] ||
        (long) facts->local_tasks != layout->tasks[node] ||
        (name != NULL && strcmp(name, cluster->names[node]) != 0))
        return hpct_fail(
            HPCT_ERR_CONFIG,
            "rank %ld is task %u of node %ld (%s), but was expected as task %d of node %d "
            "(%s): the layout of this step cannot be worked out; use --distribution=block, cyclic "
            "or plane, in a step over several components block, or srun --mpi=pmix",
            at->rank, facts->local_rank, at->node, name == NULL ? "?" : name,
            layout->local[at->rank], node, cluster->names[node]);
    return HPCT_OK;
}

/* GPUs per node. Slurm gives a task only its own node's count; with --gres and --gpus-per-node it
 * is equal on all nodes, with --gpus it is not. */
static int *count_gpus(const hpct_cluster_environment *environment, int node, int num_nodes)
{
    long own = 0;
    const char *text = hpct_cluster_environment_get(environment, "SLURM_GPUS_ON_NODE");
    if (text == NULL || !hpct_number_parse(text, 0, MAX_GPUS, &own))
        own =
            hpct_spank_gpu_count(hpct_cluster_environment_get(environment, "CUDA_VISIBLE_DEVICES"));
    int *gpus = calloc((size_t) num_nodes, sizeof *gpus);
    for (int i = 0; gpus != NULL && i < num_nodes; i++)
        gpus[i] = i == node || hpct_cluster_environment_get(environment, "SLURM_GPUS") == NULL
                      ? (int) own
                      : 0;
    return gpus;
}

static hpct_status add_places(hpct_cluster_config *config, const char *tmpdir,
                              const hpct_spank_choices *choices)
{
    config->tmpdir = strdup(tmpdir);
    if (config->tmpdir == NULL)
        return hpct_fail_memory(0);
    if (choices->stage.count == 0)
        return HPCT_OK;
    if (asprintf(&config->data, "%s/%s", tmpdir, choices->stage.entries[0].dst) >= 0)
        return HPCT_OK;
    config->data = NULL;
    return hpct_fail_memory(0);
}

/* Candidate blocks of ports. */
typedef struct port_source {
    const hpct_cluster_environment *environment;
    const hpct_cluster_port_range *range; /* NULL: no range was given */
    hpct_cluster_port_range otherwise;
    uint32_t job, step;
} port_source;

static hpct_status set_block(hpct_cluster *cluster, const port_source *from, int choice,
                             int *choices)
{
    return hpct_cluster_set_ports(cluster, from->environment, from->range, from->otherwise,
                                  from->job, from->step, choice, choices);
}

static int spare_port(const hpct_cluster *cluster, const port_source *from)
{
    return hpct_cluster_spare_port(cluster, from->environment, from->range, from->otherwise);
}

/* For each block the ports that this node needs: those of its tasks and that of staging. */
static hpct_status choose_ports(const hpct_spank_task_facts *facts, const place *at, bool connect,
                                const port_source *from, hpct_cluster *cluster)
{
    const int tasks = cluster->layout.tasks[at->node];
    int count = 1, choice = 0;
    hpct_status status = set_block(cluster, from, 0, &count);
    if (status != HPCT_OK || facts->choose == NULL)
        return status;
    const bool spare = connect && spare_port(cluster, from) != cluster->ports[0];
    const int each = tasks + (spare ? 1 : 0);
    int *ports = calloc((size_t) count * (size_t) each, sizeof *ports);
    if (ports == NULL)
        return hpct_fail_memory((size_t) count * (size_t) each * sizeof *ports);
    for (int block = 0; status == HPCT_OK && block < count; block++) {
        int *own = ports + (size_t) block * (size_t) each;
        status = set_block(cluster, from, block, NULL);
        if (status != HPCT_OK)
            break;
        memcpy(own, cluster->ports, (size_t) tasks * sizeof *own);
        if (spare)
            own[tasks] = spare_port(cluster, from);
    }
    const hpct_spank_ports_wanted wanted = {
        .blocks = {.ports = ports, .each = each, .count = count},
        .node = (int) at->node,
        .num_nodes = cluster->layout.num_nodes,
        .names = cluster->names,
    };
    if (status == HPCT_OK)
        status = facts->choose(facts->context, &wanted, &choice);
    if (status == HPCT_OK)
        status = set_block(cluster, from, choice, NULL);
    free(ports);
    return status;
}

/* On a network that was chosen, nodes have its addresses. */
static hpct_status use_network(const hpct_agree_network *network, hpct_cluster *cluster)
{
    if (network == NULL || network->num_addresses != (uint32_t) cluster->layout.num_nodes)
        return HPCT_OK;
    for (int node = 0; node < cluster->layout.num_nodes; node++) {
        char *address = strdup(network->addresses[node]);
        if (address == NULL)
            return hpct_fail_memory(0);
        free(cluster->hosts[node]);
        cluster->hosts[node] = address;
    }
    return HPCT_OK;
}

hpct_status hpct_spank_task_describe(const hpct_spank_task_facts *facts,
                                     const hpct_spank_choices *choices,
                                     const hpct_spank_settings *settings,
                                     const hpct_cluster_environment *environment,
                                     hpct_spank_team_facts *team, hpct_cluster_config **out)
{
    hpct_cluster cluster = {0};
    hpct_cluster_config *config = NULL;
    place at = {0};
    int *gpus = NULL;
    *team = (hpct_spank_team_facts){0};
    HPCT_TRY(hpct_cluster_from_slurm(environment, facts->total_tasks, &cluster));
    hpct_status status = find_place(facts, &cluster.layout, environment, &at);
    if (status == HPCT_OK)
        status = check(facts, &at, &cluster, environment);
    if (status == HPCT_OK)
        status = hpct_cluster_set_hosts(&cluster, environment, facts->address_of);
    const hpct_spec_stage_plan plan = hpct_spec_stage_plan_make(
        choices->stage_mode, choices->stage.count, cluster.layout.num_nodes, facts->trusted);
    const port_source from = {
        .environment = environment,
        .range = choices->has_port ? &choices->port : NULL,
        .otherwise = settings->has_ports ? settings->ports : hpct_cluster_port_range_default(),
        .job = at.job,
        .step = facts->step,
    };
    if (status == HPCT_OK)
        status = choose_ports(facts, &at, plan.connect, &from, &cluster);
    if (status == HPCT_OK)
        status = use_network(facts->network, &cluster);
    if (status != HPCT_OK)
        goto end;
    gpus = count_gpus(environment, (int) at.node, cluster.layout.num_nodes);
    if (gpus == NULL) {
        status = hpct_fail_memory(0);
        goto end;
    }
    status = hpct_cluster_config_of(&cluster, (int) at.rank, at.job, facts->step, &choices->roles,
                                    gpus, &config);
    if (status == HPCT_OK)
        status = hpct_spank_gpu_choose(
            &choices->bind, hpct_cluster_environment_get(environment, "CUDA_VISIBLE_DEVICES"),
            config->local_rank, &config->gpu);
    if (status == HPCT_OK)
        status = add_places(config, facts->tmpdir, choices);
    if (status == HPCT_OK && plan.connect) {
        team->port = spare_port(&cluster, &from);
        team->hosts = hpct_cluster_hosts(&cluster, team->port);
        status = team->hosts == NULL ? hpct_fail_memory(0) : HPCT_OK;
    }
    if (status == HPCT_OK) {
        *out = config;
        config = NULL;
    }
end:
    free(gpus);
    hpct_cluster_config_free(config);
    hpct_cluster_free(&cluster);
    return status;
}

static hpct_status write_file(const char *path, const char *temporary, const char *text)
{
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", temporary, strerror(errno));
    bool written = hpct_fd_write(fd, text, strlen(text));
    if (close(fd) == 0 && written && rename(temporary, path) == 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", written ? path : temporary,
                     strerror(errno));
}

hpct_status hpct_spank_private_write(const char *tmpdir, const char *name, const char *text,
                                     char **out)
{
    char *folder = NULL, *path = NULL, *temporary = NULL;
    hpct_status status;
    if (asprintf(&folder, "%s/" HPCT_SPEC_PRIVATE_FOLDER, tmpdir) < 0 ||
        asprintf(&path, "%s/%s", folder, name) < 0 || asprintf(&temporary, "%s.new", path) < 0)
        status = hpct_fail_memory(0);
    else if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s", folder, strerror(errno));
    else
        status = write_file(path, temporary, text);
    free(folder);
    free(temporary);
    if (status == HPCT_OK)
        *out = path;
    else
        free(path);
    return status;
}
