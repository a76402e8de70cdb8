/* Connects the ranks of a context: heartbeats, then a communicator over MPI, TCP or NCCL. */
#include "agent/rank/context_state.h"

#include "agent/comm/deadline.h"
#include "agent/comm/device.h"
#include "agent/comm/exchange.h"
#include "agent/comm/nccl.h"
#include "agent/comm/pmix_key.h"
#include "agent/comm/rendezvous.h"
#include "agent/comm/staged.h"
#include "agent/rank/device_calls.h"
#include "base/net/link.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOIN_SECONDS 300  /* staging may end minutes later on one node than on others */
#define NOTICE_SECONDS 30 /* without progress on any rank, until it is reported */
#define STANDSTILL_SECONDS 1800
#define END_STEP_MS 20000

void hpct_context_set_auth(hpct_context *context)
{
    const char *job = context->config->job;
    context->auth = (hpct_auth){.key = context->key};
    snprintf(context->auth.run, sizeof context->auth.run, "%s", job == NULL ? "" : job);
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
        hpct_context_set_auth(context);
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
    hpct_context_set_auth(context);
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

hpct_status hpct_context_join(hpct_context *context, const char *device, const char *wish)
{
    hpct_comm_meeting meeting = {
        .config = context->config, .auth = &context->auth, .listen_fd = -1};
    hpct_status status = join_by(context, &meeting, device, wish);
    if (meeting.listen_fd >= 0)
        close(meeting.listen_fd);
    return status;
}
