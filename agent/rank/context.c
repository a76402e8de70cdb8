/* The context of a process: configuration, communicator and heartbeats, opened and closed in
 * order. */
#include "agent/rank/context.h"

#include "agent/comm/deadline.h"
#include "agent/comm/device.h"
#include "agent/comm/exchange.h"
#include "agent/comm/nccl.h"
#include "agent/comm/pmix_key.h"
#include "agent/comm/rendezvous.h"
#include "agent/comm/staged.h"
#include "agent/comm/watch.h"
#include "agent/rank/device_calls.h"
#include "agent/rank/memory.h"
#include "base/debug.h"
#include "base/net/link.h"
#include "base/number.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOIN_SECONDS 300  /* staging may end minutes later on one node than on others */
#define NOTICE_SECONDS 30 /* without progress on any rank, until it is reported */
#define STANDSTILL_SECONDS 1800
#define AGREE_TEXT 512
#define END_STEP_MS 20000

struct hpct_context {
    hpct_cluster_config *config;
    hpct_comm *comm;
    hpct_comm_watch *watch; /* NULL for one rank */
    hpct_auth_key *key;     /* NULL for one rank, and until it is read */
    hpct_auth auth;         /* with that key */
    int standstill_seconds;
    char node[HPCT_NET_FRAME_NODE];
    bool apart;         /* not connected to other tasks (parameter-server) */
    int workers;        /* apart: number of training ranks */
    bool leads;         /* apart: this is parameter server 0 */
    hpct_status agreed; /* the last error that all ranks know of */
    hpct_comm_network network;
    bool measured;       /* `network` is set */
    char connected[160]; /* how the ranks are connected, if not by MPI; or "" */
};

static void context_free(hpct_context *context)
{
    hpct_cluster_config_free(context->config);
    if (context->key != NULL) /* NULL in a context within another one */
        hpct_comm_pmix_key_end();
    hpct_auth_key_free(context->key);
    free(context);
}

static void set_auth(hpct_context *context)
{
    const char *job = context->config->job;
    context->auth = (hpct_auth){.key = context->key};
    snprintf(context->auth.run, sizeof context->auth.run, "%s", job == NULL ? "" : job);
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

static hpct_status read_seconds(int *seconds, const char *name, int least, int standard)
{
    const char *text = getenv(name);
    char *end = NULL;
    *seconds = standard;
    if (text == NULL || *text == '\0')
        return HPCT_OK;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > 86400)
        return hpct_fail(HPCT_ERR_CONFIG, "%s='%s' is not a number of seconds from %d to 86400",
                         name, text, least);
    *seconds = (int) value;
    return HPCT_OK;
}

hpct_status hpct_context_join_seconds(int *seconds)
{
    return read_seconds(seconds, "HPC_TRAIN_JOIN_SECONDS", 1, JOIN_SECONDS);
}

static void wait_for_watch(void *watch)
{
    hpct_comm_watch_meet(watch);
}

/* Connects by MPI. If `rendezvous` is not NULL, also distributes the address of rank 0's watch: no
 * watch monitors the ranks until then. *world: as in hpct_comm_mpi_open. */
static hpct_status open_mpi(hpct_context *context, int seconds, hpct_comm_rendezvous *rendezvous,
                            int *world)
{
    char line[300];
    hpct_comm_deadline *deadline;
    const hpct_cluster_config *config = context->config;
    *world = 0;
    snprintf(line, sizeof line,
             "hpc-train: rank %d (%s): MPI did not connect the ranks within %d s: another one has "
             "not come or was lost, or MPI found no network to it; ending with exit code %d",
             config->rank, context->node, seconds, HPCT_ERR_PEER);
    HPCT_TRY(hpct_comm_deadline_begin(&deadline, seconds, HPCT_ERR_PEER, line));
    hpct_status status =
        hpct_comm_mpi_open(&context->comm, config->rank, config->size, world,
                           context->watch == NULL ? NULL : wait_for_watch, context->watch);
    if (status == HPCT_OK)
        hpct_comm_mpi_set_place(
            context->comm, &(hpct_comm_mpi_place){config->node_rank, config->num_nodes, seconds});
    if (status == HPCT_OK && rendezvous != NULL)
        status = hpct_comm_rendezvous_through(rendezvous, context->comm);
    if (status == HPCT_OK && rendezvous != NULL)
        status = hpct_comm_rendezvous_draw_key(&context->key, context->comm);
    if (status == HPCT_OK) {
        set_auth(context);
        context->comm->auth = &context->auth;
    }
    hpct_comm_deadline_end(deadline);
    return status;
}

static hpct_status open_tcp(hpct_context *context, const hpct_comm_meeting *meeting,
                            const char *why)
{
    snprintf(context->connected, sizeof context->connected,
             "ranks are connected by TCP, not MPI: %s", why);
    return hpct_comm_tcp_open(&context->comm, meeting);
}

/* Connects ranks that the watch monitors, as `wish` says: "mpi", "tcp", or "auto", which is MPI
 * unless MPI does not know all ranks. */
static hpct_status open_hosts(hpct_context *context, const hpct_comm_meeting *meeting,
                              const char *wish)
{
    const char *why = "--comm tcp";
    char seen[64];
    int world, size = context->config->size;
    if (strcmp(wish, "tcp") == 0 || (strcmp(wish, "mpi") != 0 && !hpct_comm_mpi_is_told(&why)))
        return open_tcp(context, meeting, why);
    hpct_status status = open_mpi(context, meeting->seconds, NULL, &world);
    if (status == HPCT_OK || strcmp(wish, "mpi") == 0 || world == 0 || world == size)
        return status;
    snprintf(seen, sizeof seen, "MPI sees %d of %d ranks", world, size);
    return open_tcp(context, meeting, seen);
}

static hpct_status stage(hpct_context *context, const hpct_device_calls *calls)
{
    hpct_comm *staged = NULL;
    HPCT_TRY(hpct_comm_staged_open(&staged, context->comm, calls));
    context->comm = staged;
    return HPCT_OK;
}

/* Replaces the communicator, if any, by NCCL if all ranks have it; else adds staging through the
 * host on a rank with a GPU. */
static hpct_status open_device(hpct_context *context, const hpct_comm_meeting *meeting,
                               const hpct_device_calls *calls)
{
    hpct_comm *opened = NULL;
    const hpct_comm_device_options options = {
        .meeting = meeting, .calls = calls, .under = context->comm};
    hpct_status status = hpct_comm_device_open(&opened, &options);
    if (opened != NULL)
        context->comm = opened;
    else if (status == HPCT_OK && context->comm != NULL && calls != NULL)
        status = stage(context, calls);
    return status;
}

/* The hosts of config->addresses; the caller frees the strings and the array (NULL-terminated). */
static char **hosts_by_rank(const hpct_cluster_config *config)
{
    char host[256];
    int port;
    char **hosts = calloc((size_t) config->size + 1, sizeof *hosts);
    for (int rank = 0; hosts != NULL && rank < config->size; rank++) {
        if (!hpct_net_link_split_address(config->addresses[rank], host, sizeof host, &port))
            snprintf(host, sizeof host, "%.200s", config->addresses[rank]);
        hosts[rank] = strdup(host);
        if (hosts[rank] == NULL)
            break;
    }
    return hosts;
}

/* Ends the step by Slurm if MPI does not know the ranks: scancel makes the controller kill all
 * tasks, this one too, so it first gives the others time to end. (With --signal, scancel would
 * contact the nodes itself, and be killed by the first.) Child processes end with this one. */
static void end_step(int status)
{
    extern char **environ;
    char name[64], words[][16] = {"scancel", "--quiet"};
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    pid_t pid;
    hpct_comm_mpi_end_step(status);
    if (job == NULL || step == NULL)
        return;
    snprintf(name, sizeof name, "%.30s.%.30s", job, step);
    char *const all[] = {words[0], words[1], name, NULL};
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    if (posix_spawnp(&pid, all[0], NULL, NULL, all, environ) != 0)
        return;
    int64_t until_ms = hpct_now_ms() + END_STEP_MS;
    while (waitpid(pid, NULL, WNOHANG) == 0 && hpct_now_ms() < until_ms)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static hpct_status start_watch(hpct_context *context, const hpct_comm_rendezvous *wait_for_watch,
                               int seconds)
{
    const hpct_cluster_config *config = context->config;
    const char *addresses[HPCT_COMM_RENDEZVOUS_ADDRESSES];
    char **hosts = config->addresses == NULL ? NULL : hosts_by_rank(config);
    for (int i = 0; i < wait_for_watch->num_addresses; i++)
        addresses[i] = wait_for_watch->addresses[i];
    hpct_comm_watch_options options = {
        .rank = config->rank,
        .size = config->size,
        .node = context->node,
        .auth = &context->auth,
        .listen_fd = wait_for_watch->listen_fd,
        .addresses = addresses,
        .num_addresses = wait_for_watch->num_addresses,
        .rank_nodes = (const char *const *) hosts,
        .join_seconds = seconds,
        .notice_ms = 1000 * NOTICE_SECONDS,
        .standstill_ms = 1000 * context->standstill_seconds,
        .end_step = end_step,
        .check = hpct_comm_nccl_check,
    };
    hpct_status status = hpct_comm_watch_start(&context->watch, &options);
    for (int rank = 0; hosts != NULL && hosts[rank] != NULL; rank++)
        free(hosts[rank]);
    free(hosts);
    return status;
}

/* Whether "auto" has to ask the other ranks for GPUs. From Slurm's GPU count per node: equal on all
 * ranks. */
static bool may_have_gpus(const hpct_cluster_config *config)
{
    int gpus = config->nodes == NULL;
    for (int node = 0; config->nodes != NULL && node < config->num_nodes; node++)
        gpus += config->nodes[node].gpus;
    return gpus > 0;
}

/* The step's key; without the plugin one shared by PMIx, or none. */
static hpct_status find_key(hpct_context *context, int seconds)
{
    hpct_status status = HPCT_OK;
    if (hpct_comm_rendezvous_has_key()) {
        status = hpct_comm_rendezvous_read_key(&context->key);
    } else {
        status = hpct_comm_pmix_key_share(&context->key, context->config->rank, seconds);
        if (!hpct_comm_mpi_shares_pmix())
            hpct_comm_pmix_key_end();
    }
    set_auth(context);
    return status;
}

/* Duplicates the listening socket: the watch closes its own when all are connected, and another
 * process could take the port before the ranks connect to it again. */
static hpct_status keep_listening(hpct_comm_meeting *meeting, int listen_fd)
{
    meeting->listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
    return meeting->listen_fd >= 0 ? HPCT_OK
                                   : hpct_fail(HPCT_ERR_INTERNAL, "fcntl: %s", strerror(errno));
}

/* If addresses and a key are known, the watch is started first, because MPI_Init may wait forever
 * for a missing rank. If all ranks then have NCCL, MPI is not started. */
static hpct_status join_by(hpct_context *context, hpct_comm_meeting *meeting, const char *device,
                           const char *wish)
{
    hpct_comm_rendezvous wait_for_watch;
    int world;
    const hpct_device_calls *calls = NULL;
    if (strcmp(wish, "tcp") == 0 && context->config->addresses == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "--comm tcp: nobody said where the ranks listen: start "
                                          "them with srun --hpc-train");
    HPCT_TRY(hpct_context_join_seconds(&meeting->seconds));
    HPCT_TRY(read_seconds(&context->standstill_seconds, "HPC_TRAIN_STANDSTILL_SECONDS", 0,
                          STANDSTILL_SECONDS));
    if (context->config->addresses != NULL)
        HPCT_TRY(find_key(context, meeting->seconds));
    if (context->key == NULL && strcmp(wish, "tcp") == 0)
        return hpct_comm_rendezvous_read_key(&context->key); /* its error says how to get one */
    bool watch_first = context->key != NULL;
    if (strcmp(device, "auto") == 0 && watch_first && !may_have_gpus(context->config))
        device = "cpu";
    bool ask = strcmp(device, "cpu") != 0;
    if (watch_first) {
        HPCT_TRY(hpct_comm_rendezvous_from_config(&wait_for_watch, context->config));
        if (wait_for_watch.listen_fd >= 0)
            HPCT_TRY(keep_listening(meeting, wait_for_watch.listen_fd));
        HPCT_TRY(start_watch(context, &wait_for_watch, meeting->seconds));
    }
    HPCT_TRY(hpct_rank_comm_device_calls(&calls, device));
    if (watch_first && ask)
        HPCT_TRY(open_device(context, meeting, calls));
    if (context->comm != NULL)
        return HPCT_OK;
    if (watch_first) {
        HPCT_TRY(open_hosts(context, meeting, wish));
    } else {
        HPCT_TRY(open_mpi(context, meeting->seconds, &wait_for_watch, &world));
        HPCT_TRY(start_watch(context, &wait_for_watch, meeting->seconds));
        if (ask)
            return open_device(context, meeting, calls);
    }
    return calls != NULL ? stage(context, calls) : HPCT_OK;
}

static hpct_status join(hpct_context *context, const char *device, const char *wish)
{
    hpct_comm_meeting meeting = {
        .config = context->config, .auth = &context->auth, .listen_fd = -1};
    hpct_status status = join_by(context, &meeting, device, wish);
    if (meeting.listen_fd >= 0)
        close(meeting.listen_fd);
    return status;
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
    hpct_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return hpct_fail_memory(sizeof *context);
    hpct_status status = hpct_cluster_config_read(&context->config);
    if (status != HPCT_OK) {
        free(context);
        return status;
    }
    set_node(context);
    status = check_roles(context->config);
    if (status == HPCT_OK)
        status = context->config->size == 1 ? hpct_comm_self_open(&context->comm)
                                            : join(context, device, wish);
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
    hpct_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        return hpct_fail_memory(sizeof *context);
    hpct_status status = hpct_cluster_config_read(&context->config);
    if (status != HPCT_OK) {
        free(context);
        return status;
    }
    set_node(context);
    context->apart = true;
    status = find_roles_apart(context);
    if (status == HPCT_OK)
        status = hpct_comm_rendezvous_read_key(&context->key);
    if (status == HPCT_OK) {
        set_auth(context);
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
