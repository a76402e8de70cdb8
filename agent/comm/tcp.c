/* The communicator over TCP, which only needs the step's addresses and key: collectives on a
 * circulant graph, reductions and streams by letters. As in MPI, waits have no timeout: the watch
 * ends a process whose peer died or stopped. */
#include "agent/comm/exchange.h"
#include "agent/comm/peers.h"
#include "agent/comm/tcp_comm.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MOST ((size_t) 1 << 20) /* floats per call of hpct_comm_circulant_sum */
#define NAP_MS 100

/* ---- collectives ---- */

static hpct_comm_circulant *circulant_of(hpct_comm *comm)
{
    return ((tcp_comm *) comm)->circulant;
}

static hpct_status allreduce_sum(hpct_comm *comm, float *data, size_t count)
{
    hpct_status status = HPCT_OK;
    while (count > 0 && status == HPCT_OK) {
        size_t chunk = count < MOST ? count : MOST;
        status = hpct_comm_circulant_sum(circulant_of(comm), data, chunk);
        data += chunk;
        count -= chunk;
    }
    return status;
}

static hpct_status broadcast(hpct_comm *comm, void *data, size_t bytes, int root)
{
    return hpct_comm_circulant_broadcast(circulant_of(comm), data, bytes, root);
}

static hpct_status allgather(hpct_comm *comm, const void *mine, void *all, size_t bytes)
{
    return hpct_comm_circulant_gather_bytes(circulant_of(comm), mine, all, bytes);
}

/* ---- progress during waits ---- */

hpct_status hpct_tcp_move(tcp_world *world, bool sleep)
{
    struct epoll_event event;
    hpct_status status = HPCT_OK;
    for (const tcp_comm *t = world->first; t != NULL && sleep; t = t->next)
        sleep = !hpct_comm_mail_can_move(t->host.mail) && !hpct_comm_mail_can_move(t->streams);
    if (sleep)
        epoll_wait(world->epoll, &event, 1, NAP_MS);
    for (const tcp_comm *t = world->first; t != NULL && status == HPCT_OK; t = t->next) {
        status = hpct_comm_mail_move(t->host.mail, 0);
        if (status == HPCT_OK)
            status = hpct_comm_mail_move(t->streams, 0);
    }
    return status;
}

static hpct_status move(hpct_comm_host_comm *host, bool sleep)
{
    return hpct_tcp_move(((tcp_comm *) host)->world, sleep);
}

static hpct_status move_aside(void *world)
{
    return hpct_tcp_move(world, false);
}

static const hpct_comm_carrier carrier = {.move = move};

/* ---- opening and closing ---- */

static void world_free(tcp_world *world)
{
    if (world->epoll >= 0)
        close(world->epoll);
    free(world);
}

static void tcp_close(hpct_comm *comm)
{
    tcp_comm *t = (tcp_comm *) comm, **at = &t->world->first;
    while (*at != NULL && *at != t)
        at = &(*at)->next;
    if (*at == t)
        *at = t->next;
    hpct_comm_mail_close(t->host.mail);
    hpct_comm_mail_close(t->streams);
    hpct_comm_circulant_close(t->circulant);
    if (t->world->first == NULL) /* the whole group is closed last */
        world_free(t->world);
    free(t);
}

static hpct_status tcp_split(hpct_comm *comm, hpct_comm **out, int color);

static const hpct_comm_ops tcp_ops = {
    .name = "tcp",
    .of_hosts = true,
    .allreduce_sum = allreduce_sum,
    .broadcast = broadcast,
    .allgather = allgather,
    .prepare = hpct_comm_reduction_prepare,
    .start = hpct_comm_reduction_start,
    .progress = hpct_comm_reduction_progress,
    .is_done = hpct_comm_reduction_is_done,
    .wait = hpct_comm_reduction_wait,
    .release = hpct_comm_reduction_release,
    .open_stream = hpct_tcp_open_stream,
    .next = hpct_tcp_next,
    .pass = hpct_tcp_pass,
    .push = hpct_tcp_push,
    .drain = hpct_tcp_drain,
    .close_stream = hpct_tcp_close_stream,
    .split = tcp_split,
    .close = tcp_close,
    .abandon = tcp_close,
};

static hpct_status connect_circulant(tcp_comm *t, const hpct_comm_peers_group *group, bool *wanted)
{
    hpct_comm_peers *peers = NULL;
    hpct_comm_circulant_want(group->rank, group->size, wanted);
    HPCT_TRY(hpct_comm_peers_connect(&peers, group, wanted, t->world->seconds));
    hpct_comm_peers_set_aside(peers, t->world->epoll, move_aside, t->world);
    return hpct_comm_circulant_over(&t->circulant, peers, group->rank, group->size, MOST);
}

static hpct_status open_mail(tcp_comm *t, hpct_comm_mail **out, const bool *wanted)
{
    struct epoll_event event = {.events = EPOLLIN};
    HPCT_TRY(hpct_comm_mail_open(out, &t->host.base, wanted, t->world->seconds));
    if (epoll_ctl(t->world->epoll, EPOLL_CTL_ADD, hpct_comm_mail_fd(*out), &event) != 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "epoll_ctl: %s", strerror(errno));
    return HPCT_OK;
}

/* Connects the collectives first, then the rest through them. `t` joins the world. */
static hpct_status connect_all(tcp_comm *t, const hpct_comm_peers_group *group)
{
    size_t size = (size_t) group->size;
    bool *wanted = calloc(size, sizeof *wanted);
    if (wanted == NULL)
        return hpct_fail_memory(size * sizeof *wanted);
    hpct_status status = connect_circulant(t, group, wanted);
    for (int rank = 0; rank < group->size; rank++)
        wanted[rank] = rank != group->rank;
    if (status == HPCT_OK)
        status = open_mail(t, &t->host.mail, wanted);
    if (status == HPCT_OK)
        status = open_mail(t, &t->streams, wanted);
    free(wanted);
    if (status == HPCT_OK) {
        t->next = t->world->first;
        t->world->first = t;
    }
    return status;
}

static hpct_status open_group(hpct_comm **out, tcp_world *world, const hpct_comm_peers_group *group)
{
    tcp_comm *t = calloc(1, sizeof *t);
    if (t == NULL)
        return hpct_fail_memory(sizeof *t);
    t->host = (hpct_comm_host_comm){.base = {.ops = &tcp_ops,
                                             .rank = group->rank,
                                             .size = group->size,
                                             .auth = world->auth,
                                             .sleeps = true},
                                    .carrier = &carrier};
    t->world = world;
    hpct_status status = connect_all(t, group);
    if (status == HPCT_OK) {
        *out = &t->host.base;
        return HPCT_OK;
    }
    hpct_comm_mail_close(t->host.mail);
    hpct_comm_mail_close(t->streams);
    hpct_comm_circulant_close(t->circulant);
    free(t);
    return status;
}

static hpct_status deal_by_exchange(void *meeting, const void *mine, void *all, size_t bytes)
{
    return hpct_comm_exchange(meeting, mine, all, bytes);
}

hpct_status hpct_comm_tcp_open(hpct_comm **out, const hpct_comm_meeting *meeting)
{
    hpct_comm_meeting at = *meeting;
    tcp_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        return hpct_fail_memory(sizeof *world);
    *world =
        (tcp_world){.epoll = epoll_create1(EPOLL_CLOEXEC), .auth = at.auth, .seconds = at.seconds};
    const hpct_comm_peers_group group = {.rank = at.config->rank,
                                         .size = at.config->size,
                                         .auth = at.auth,
                                         .deal = deal_by_exchange,
                                         .argument = &at};
    hpct_status status = world->epoll >= 0
                             ? open_group(out, world, &group)
                             : hpct_fail(HPCT_ERR_INTERNAL, "epoll: %s", strerror(errno));
    if (status != HPCT_OK)
        world_free(world);
    return status;
}

/* ---- split ---- */

typedef struct part {
    hpct_comm *whole;
    int *colors; /* [whole->size] */
    int color;
} part;

/* Exchanges through the whole group; each rank takes the records of its part. */
static hpct_status deal_over_whole(void *argument, const void *mine, void *all, size_t bytes)
{
    const part *p = argument;
    size_t size = (size_t) p->whole->size;
    char *records = malloc(size * bytes), *at = all;
    if (records == NULL)
        return hpct_fail_memory(size * bytes);
    hpct_status status = allgather(p->whole, mine, records, bytes);
    for (size_t rank = 0; rank < size && status == HPCT_OK; rank++) {
        if (p->colors[rank] != p->color)
            continue;
        memcpy(at, records + rank * bytes, bytes);
        at += bytes;
    }
    free(records);
    return status;
}

static hpct_status tcp_split(hpct_comm *comm, hpct_comm **out, int color)
{
    tcp_world *world = ((tcp_comm *) comm)->world;
    part p = {comm, calloc((size_t) comm->size, sizeof *p.colors), color};
    if (p.colors == NULL)
        return hpct_fail_memory((size_t) comm->size * sizeof *p.colors);
    hpct_status status = allgather(comm, &color, p.colors, sizeof color);
    if (status == HPCT_OK) {
        hpct_comm_peers_group group = {
            .auth = world->auth, .deal = deal_over_whole, .argument = &p, .comm = comm};
        for (int rank = 0; rank < comm->size; rank++) {
            group.rank += p.colors[rank] == color && rank < comm->rank;
            group.size += p.colors[rank] == color;
        }
        status = open_group(out, world, &group);
    }
    free(p.colors);
    return status;
}
