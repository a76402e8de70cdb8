/* The context of a process: configuration, communicator and heartbeats, opened and closed in
 * order. */
#include "agent/rank/context_state.h"

#include "agent/comm/pmix_key.h"
#include "agent/comm/rendezvous.h"
#include "agent/rank/memory.h"
#include "base/debug.h"
#include "base/number.h"
#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AGREE_TEXT 512

static void context_free(hpct_context *context)
{
    hpct_cluster_config_free(context->config);
    if (context->key != NULL) /* NULL in a context within another one */
        hpct_comm_pmix_key_end();
    hpct_auth_key_free(context->key);
    free(context);
}

static void set_node(hpct_context *context)
{
    const hpct_cluster_config *config = context->config;
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    if (config->nodes != NULL && config->node_rank < config->num_nodes)
        hpct_net_frame_set(context->node, sizeof context->node,
                           config->nodes[config->node_rank].name);
    else
        hpct_net_frame_set(context->node, sizeof context->node, host);
}

/* A context that knows its node, and its rank from the configuration. */
static hpct_status new_context(hpct_context **out)
{
    hpct_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return hpct_fail_memory(sizeof *context);
    hpct_status status = hpct_cluster_config_read(&context->config);
    if (status != HPCT_OK) {
        free(context);
        return status;
    }
    set_node(context);
    *out = context;
    return HPCT_OK;
}

/* Every rank trains and has the whole model: a step with parameter servers or an evaluator is for
 * another program, and those tasks would never connect. A chief is the worker that reports and
 * saves, which is rank 0 here. */
static hpct_status check_roles(const hpct_cluster_config *config)
{
    for (int i = 0; i < config->num_roles; i++) {
        const char *role = config->roles[i].name;
        if (strcmp(role, "chief") == 0 && i > 0)
            return hpct_fail(HPCT_ERR_CONFIG,
                             "rank 0 reports and saves, but the chief is another one: name chief "
                             "first in --hpc-train-roles");
        if (strcmp(role, "worker") != 0 && strcmp(role, "chief") != 0)
            return hpct_fail(HPCT_ERR_CONFIG,
                             "this step has %d task%s of the role %s, but hpc-train trains with "
                             "workers (and a chief) alone, unless fit has --strategy "
                             "parameter-server: leave out --hpc-train-roles",
                             config->roles[i].count, config->roles[i].count == 1 ? "" : "s", role);
    }
    return HPCT_OK;
}

hpct_status hpct_context_open(hpct_context **out)
{
    return hpct_context_open_with(out, NULL);
}

hpct_status hpct_context_open_on(hpct_context **out, const char *device)
{
    return hpct_context_open_with(out, &(hpct_context_options){.device = device});
}

hpct_status hpct_context_open_with(hpct_context **out, const hpct_context_options *options)
{
    const char *device = options != NULL && options->device != NULL ? options->device : "cpu",
               *wish = options != NULL && options->comm != NULL ? options->comm : "auto";
    if (strcmp(wish, "auto") != 0 && strcmp(wish, "mpi") != 0 && strcmp(wish, "tcp") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "comm is '%s', it must be auto, mpi or tcp", wish);
    hpct_context *context;
    HPCT_TRY(new_context(&context));
    hpct_status status = check_roles(context->config);
    if (status == HPCT_OK)
        status = context->config->size == 1 ? hpct_comm_self_open(&context->comm)
                                            : hpct_context_join(context, device, wish);
    if (status == HPCT_OK)
        hpct_debug(HPCT_DEBUG_COMM, "rank %d of %d on %s: connected over %s", context->config->rank,
                   context->config->size, context->node, context->comm->ops->name);
    if (status == HPCT_OK)
        status = hpct_rank_memory_meet(context->comm, context->node);
    if (status != HPCT_OK) {
        hpct_context_abort(context, status);
        return status;
    }
    *out = context;
    return HPCT_OK;
}

hpct_status hpct_context_open_after(hpct_context **out, hpct_status before,
                                    const hpct_context_options *options)
{
    char *message = before != HPCT_OK ? strdup(hpct_last_error()) : NULL;
    hpct_status status = hpct_context_open_with(out, options);
    if (before != HPCT_OK) /* opening may have replaced it */
        hpct_fail(before, "%s", message != NULL ? message : "out of memory");
    free(message);
    if (status != HPCT_OK)
        return before != HPCT_OK ? before : status;
    return hpct_context_agree(*out, before);
}

static hpct_status find_roles_apart(hpct_context *context)
{
    const hpct_cluster_config *config = context->config;
    int servers = 0;
    for (int i = 0; i < config->num_roles; i++) {
        const char *role = config->roles[i].name;
        if (strcmp(role, "ps") == 0)
            servers += config->roles[i].count;
        else if (strcmp(role, "worker") == 0 || strcmp(role, "chief") == 0)
            context->workers += config->roles[i].count;
        else
            return hpct_fail(HPCT_ERR_USAGE,
                             "--hpc-train-roles: --strategy parameter-server has no use for the "
                             "role %s, only for ps, worker and chief",
                             role);
    }
    if (servers == 0 || context->workers == 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--strategy parameter-server needs parameter servers and workers, and "
                         "here are %d and %d: srun --hpc-train-roles=ps:2,worker:4",
                         servers, context->workers);
    if (config->addresses == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "--strategy parameter-server: nobody said where the "
                                          "tasks listen: use srun --hpc-train");
    context->leads = strcmp(config->role, "ps") == 0 && config->role_index == 0;
    return HPCT_OK;
}

hpct_status hpct_context_open_apart(hpct_context **out)
{
    hpct_context *context;
    HPCT_TRY(new_context(&context));
    context->apart = true;
    hpct_status status = find_roles_apart(context);
    if (status == HPCT_OK)
        status = hpct_comm_rendezvous_read_key(&context->key);
    if (status == HPCT_OK) {
        hpct_context_set_auth(context);
        status = hpct_comm_self_open(&context->comm);
    }
    if (status != HPCT_OK) {
        context_free(context);
        return status;
    }
    *out = context;
    return HPCT_OK;
}

hpct_status hpct_context_open_over(hpct_context **out, hpct_comm *comm, const char *node)
{
    hpct_context *context = calloc(1, sizeof *context);
    hpct_cluster_config *config = calloc(1, sizeof *config);
    if (context == NULL || config == NULL) {
        free(context);
        free(config);
        return hpct_fail_memory(sizeof *context + sizeof *config);
    }
    *config = (hpct_cluster_config){.source = HPCT_CLUSTER_CONFIG_ALONE,
                                    .rank = comm->rank,
                                    .size = comm->size,
                                    .local_size = 1,
                                    .num_nodes = 1};
    context->config = config;
    context->comm = comm;
    hpct_net_frame_set(context->node, sizeof context->node, node);
    *out = context;
    return HPCT_OK;
}

hpct_status hpct_context_open_alone(hpct_context **out)
{
    char host[256] = "localhost";
    hpct_comm *comm;
    gethostname(host, sizeof host - 1);
    HPCT_TRY(hpct_comm_self_open(&comm));
    hpct_status status = hpct_context_open_over(out, comm, host);
    if (status != HPCT_OK)
        comm->ops->close(comm);
    return status;
}

/* Closes the communicator first: while it waits for other ranks, the watch still detects lost
 * ones. */
void hpct_context_close(hpct_context *context)
{
    if (context == NULL)
        return;
    context->comm->ops->close(context->comm);
    if (context->watch != NULL)
        hpct_comm_watch_stop(context->watch);
    context_free(context);
}

void hpct_context_abort(hpct_context *context, hpct_status status)
{
    if (context == NULL)
        return;
    if (context->watch != NULL)
        hpct_comm_watch_abort(context->watch, status, hpct_last_error());
    if (context->comm != NULL)
        context->comm->ops->abandon(context->comm);
    context_free(context);
}

/* `own`: an error of this rank, which others may not know: the message names the rank. */
static void print_error(const hpct_context *context, const char *program, bool own)
{
    const char *error = hpct_last_error();
    if (own && context != NULL && !context->apart && strncmp(error, "rank ", 5) != 0)
        fprintf(stderr, "%s: rank %d (%s): %s\n", program, context->config->rank, context->node,
                error);
    else
        fprintf(stderr, "%s: %s\n", program, error);
}

/* After HPCT_ERR_PEER: waits for the failed rank's own message. The watch prints it and ends this
 * process, unless that rank sees this one end first. */
static void hear_others(const hpct_context *context)
{
    const struct timespec patience = {.tv_sec = 3};
    if (context != NULL && context->watch != NULL)
        nanosleep(&patience, NULL);
}

hpct_status hpct_context_finish(hpct_context *context, const char *program, hpct_status status)
{
    bool all_know = context != NULL && hpct_context_all_know(context, status);
    if (status == HPCT_ERR_PEER && !all_know)
        hear_others(context);
    if (status != HPCT_OK && (!all_know || context->config->rank == 0))
        print_error(context, program, !all_know);
    if (status == HPCT_OK || all_know)
        hpct_context_close(context);
    else
        hpct_context_abort(context, status);
    return status;
}

/* ---- agreement on a status ---- */

typedef struct verdict {
    int32_t status;
    char node[HPCT_NET_FRAME_NODE];
    char text[AGREE_TEXT];
} verdict;

hpct_status hpct_context_agree(hpct_context *context, hpct_status status)
{
    hpct_comm *comm = context->comm;
    verdict mine = {.status = (int32_t) status};
    int failed = 0, alike = 0;
    const verdict *first = NULL;
    if (comm->size == 1)
        return status;
    context->agreed = HPCT_OK;
    memcpy(mine.node, context->node, sizeof mine.node);
    if (status != HPCT_OK)
        snprintf(mine.text, sizeof mine.text, "%.511s", hpct_last_error());
    verdict *all = calloc((size_t) comm->size, sizeof *all);
    if (all == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof *all);
    hpct_status gathered = comm->ops->allgather(comm, &mine, all, sizeof mine);
    if (gathered != HPCT_OK) {
        free(all);
        return gathered;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        if (all[rank].status == HPCT_OK)
            continue;
        failed++;
        if (first == NULL)
            first = &all[rank];
        if (strcmp(all[rank].text, first->text) == 0)
            alike++;
    }
    if (first == NULL)
        status = HPCT_OK;
    else if (alike == comm->size) /* equal messages: each rank has it as its last error */
        status = (hpct_status) first->status;
    else if (failed == 1)
        status = hpct_fail((hpct_status) first->status, "rank %d (%s): %s", (int) (first - all),
                           first->node, first->text);
    else
        status = hpct_fail((hpct_status) first->status, "rank %d (%s), and %d more: %s",
                           (int) (first - all), first->node, failed - 1, first->text);
    free(all);
    context->agreed = status;
    return status;
}

void *hpct_context_allocate(hpct_context *context, size_t bytes, hpct_status *status)
{
    void *memory = calloc(1, bytes);
    *status = hpct_context_agree(context, memory == NULL ? hpct_fail_memory(bytes) : HPCT_OK);
    if (*status == HPCT_OK)
        return memory;
    free(memory);
    return NULL;
}

bool hpct_context_all_know(const hpct_context *context, hpct_status status)
{
    return context->agreed == status || context->config->size == 1;
}

hpct_status hpct_context_network(hpct_context *context, hpct_comm_network *network)
{
    hpct_status status = context->measured
                             ? HPCT_OK
                             : hpct_comm_network_measure(context->comm, HPCT_COMM_NETWORK_QUICKLY,
                                                         0, &context->network);
    context->measured = status == HPCT_OK;
    *network = context->network;
    return status;
}

/* ---- queries ---- */

int hpct_context_rank(const hpct_context *context)
{
    return context->config->rank;
}

int hpct_context_size(const hpct_context *context)
{
    return context->config->size;
}

int hpct_context_workers(const hpct_context *context)
{
    return context->apart ? context->workers : context->config->size;
}

int hpct_context_first_workers(const hpct_context *context)
{
    int workers = hpct_context_workers(context);
    const char *text = getenv("HPC_TRAIN_LAUNCH_TASKS");
    long first = 0;
    bool known = text != NULL && !context->apart && hpct_number_parse(text, 1, INT_MAX, &first);
    return known ? (int) first : workers;
}

int hpct_context_leads(const hpct_context *context)
{
    return context->apart ? context->leads : context->config->rank == 0;
}

bool hpct_context_is_apart(const hpct_context *context)
{
    return context->apart;
}

bool hpct_context_serves(const hpct_context *context)
{
    return context->apart && strcmp(context->config->role, "ps") == 0;
}

int hpct_context_rank_hint(void)
{
    hpct_cluster_config *config;
    if (hpct_cluster_config_read(&config) != HPCT_OK)
        return 0;
    int rank = config->rank;
    hpct_cluster_config_free(config);
    return rank;
}

int hpct_context_local_rank(const hpct_context *context)
{
    return context->config->local_rank;
}

const char *hpct_context_data(const hpct_context *context)
{
    return context->config->data;
}

hpct_comm *hpct_context_comm(hpct_context *context)
{
    return context->comm;
}

const char *hpct_context_connected(const hpct_context *context)
{
    return context->connected[0] == '\0' ? NULL : context->connected;
}

const hpct_auth *hpct_context_auth(const hpct_context *context)
{
    return &context->auth;
}

const hpct_cluster_config *hpct_context_config(const hpct_context *context)
{
    return context->config;
}

const char *hpct_context_node(const hpct_context *context)
{
    return context->node;
}
