/* The communicator over NCCL: opening, operations that are not prepared, split and close. Host data
 * is copied through a buffer on the device, in parts if it is longer. */
#include "agent/comm/nccl.h"

#include "agent/comm/nccl_comm.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef enum once_kind { SUM, BROADCAST, GATHER } once_kind;

/* One operation; for host data, one part of it in the stage buffer. */
typedef struct nccl_once {
    once_kind kind;
    bool staged;
    void *data;      /* GATHER: records of all ranks */
    const void *src; /* GATHER: this rank's record */
    size_t count;    /* floats (SUM) or bytes per rank */
    int root;
} nccl_once;

static size_t bytes_of(const nccl_once *ask)
{
    return ask->kind == SUM ? ask->count * sizeof(float) : ask->count;
}

/* nccl_issue. Part 0: copy to the device, and the operation; part 1: copy back. */
static hpct_device_result issue_once(void *argument, int part, nccl_channel **used)
{
    nccl_comm *comm = argument;
    const nccl_once *ask = comm->ask;
    const hpct_device_calls *calls = comm->calls;
    void *nccl = comm->channel->nccl, *stream = comm->lane->stream;
    size_t bytes = bytes_of(ask), back = ask->kind == GATHER ? bytes : 0;
    hpct_device_result result = HPCT_DEVICE_OK;
    if (part == 1)
        return ask->staged
                   ? calls->copy(comm->host_stage + back, comm->stage + back,
                                 ask->kind == GATHER ? (size_t) comm->base.size * bytes : bytes,
                                 stream)
                   : HPCT_DEVICE_OK;
    if (ask->staged)
        result = calls->copy(comm->stage, comm->host_stage, bytes, stream);
    if (result != HPCT_DEVICE_OK)
        return result;
    *used = comm->channel;
    switch (ask->kind) {
    case SUM:
        return calls->all_reduce(ask->data, ask->count, HPCT_DEVICE_FP32, nccl, stream);
    case BROADCAST:
        return calls->broadcast(ask->data, ask->count, HPCT_DEVICE_BYTES, ask->root, nccl, stream);
    default:
        return calls->all_gather(ask->src, ask->data, ask->count, HPCT_DEVICE_BYTES, nccl, stream);
    }
}

static hpct_status run(nccl_comm *comm, nccl_once *ask)
{
    comm->ask = ask;
    HPCT_TRY(hpct_nccl_queue(&comm->once));
    return ask->staged ? hpct_nccl_finish(&comm->once) : hpct_nccl_follow(&comm->once);
}

static hpct_status run_barrier(const nccl_comm *comm)
{
    return comm->meet != NULL ? comm->meet(comm->argument) : HPCT_OK;
}

/* For SUM and BROADCAST. */
static hpct_status run_on(nccl_comm *comm, once_kind kind, void *data, size_t count, int root)
{
    nccl_once ask = {.kind = kind, .data = data, .count = count, .root = root};
    hpct_status status = HPCT_OK;
    if (count == 0 || comm->calls->is_device(data))
        return count == 0 ? HPCT_OK : run(comm, &ask);
    size_t size = kind == SUM ? sizeof(float) : 1;
    status = run_barrier(comm);
    ask.staged = true;
    ask.data = comm->stage;
    for (char *at = data; count > 0 && status == HPCT_OK; at += ask.count * size) {
        ask.count = count < HPCT_NCCL_STAGE_BYTES / size ? count : HPCT_NCCL_STAGE_BYTES / size;
        memcpy(comm->host_stage, at, ask.count * size);
        status = run(comm, &ask);
        if (status == HPCT_OK)
            memcpy(at, comm->host_stage, ask.count * size);
        count -= ask.count;
    }
    return status;
}

static hpct_status allreduce_sum(hpct_comm *comm, float *data, size_t count)
{
    return run_on((nccl_comm *) comm, SUM, data, count, 0);
}

static hpct_status broadcast(hpct_comm *comm, void *data, size_t bytes, int root)
{
    return run_on((nccl_comm *) comm, BROADCAST, data, bytes, root);
}

static hpct_status allgather(hpct_comm *base, const void *mine, void *all, size_t bytes)
{
    nccl_comm *comm = (nccl_comm *) base;
    size_t size = (size_t) base->size, most = HPCT_NCCL_STAGE_BYTES / (size + 1);
    nccl_once ask = {.kind = GATHER, .data = all, .src = mine, .count = bytes};
    hpct_status status = HPCT_OK;
    if (bytes == 0)
        return HPCT_OK;
    if (comm->calls->is_device(all) != comm->calls->is_device(mine))
        return hpct_fail(HPCT_ERR_INTERNAL, "allgather between device and host memory");
    if (comm->calls->is_device(all))
        return run(comm, &ask);
    status = run_barrier(comm);
    ask.staged = true;
    for (size_t begin = 0; begin < bytes && status == HPCT_OK; begin += ask.count) {
        ask.count = bytes - begin < most ? bytes - begin : most;
        ask.src = comm->stage;
        ask.data = comm->stage + ask.count;
        memcpy(comm->host_stage, (const char *) mine + begin, ask.count);
        status = run(comm, &ask);
        for (size_t rank = 0; rank < size && status == HPCT_OK; rank++)
            memcpy((char *) all + rank * bytes + begin, comm->host_stage + (rank + 1) * ask.count,
                   ask.count);
    }
    return status;
}

/* ---- closing ---- */

static void free_comm(nccl_comm *comm, bool abandon)
{
    nccl_direction *directions[] = {&comm->up, &comm->down};
    hpct_nccl_groups_close(&comm->groups, abandon);
    for (int i = 0; i < 2; i++)
        hpct_nccl_channel_close(directions[i]->channel, abandon);
    hpct_nccl_channel_close(comm->channel, abandon);
    if (!abandon) { /* freeing device memory may wait for kernels that never end */
        hpct_nccl_job_free(&comm->once);
        hpct_nccl_lane_close(&comm->up.lane, comm);
        hpct_nccl_lane_close(&comm->down.lane, comm);
        hpct_nccl_lane_close(&comm->own_lane, comm);
        if (comm->stage != NULL)
            comm->calls->release(comm->stage);
        if (comm->host_stage != NULL)
            comm->calls->release_host(comm->host_stage);
    }
    if (comm->under != NULL)
        (abandon ? comm->under->ops->abandon : comm->under->ops->close)(comm->under);
    free(comm);
}

static void nccl_close(hpct_comm *base)
{
    nccl_comm *comm = (nccl_comm *) base;
    free_comm(comm, comm->breach->status != HPCT_OK || hpct_nccl_settle(comm) != HPCT_OK);
}

static void nccl_abandon(hpct_comm *comm)
{
    free_comm((nccl_comm *) comm, true);
}

/* ---- opening ---- */

static hpct_status nccl_split(hpct_comm *comm, hpct_comm **out, int color);

static const hpct_comm_ops nccl_ops = {
    .name = "nccl",
    .allreduce_sum = allreduce_sum,
    .broadcast = broadcast,
    .allgather = allgather,
    .prepare = hpct_nccl_prepare,
    .start = hpct_nccl_start,
    .progress = hpct_nccl_progress,
    .is_done = hpct_nccl_is_done,
    .wait = hpct_nccl_wait,
    .release = hpct_nccl_release,
    .open_stream = hpct_nccl_open_stream,
    .next = hpct_nccl_next,
    .pass = hpct_nccl_pass,
    .push = hpct_nccl_push,
    .drain = hpct_nccl_drain,
    .close_stream = hpct_nccl_close_stream,
    .split = nccl_split,
    .close = nccl_close,
    .abandon = nccl_abandon,
};

/* Allocates a group's own buffers and job; the lane must exist. */
static hpct_status furnish(nccl_comm *comm)
{
    void *device = NULL, *host = NULL;
    const hpct_device_calls *calls = comm->calls;
    hpct_status status = hpct_nccl_check(comm, calls->allocate(&device, HPCT_NCCL_STAGE_BYTES),
                                         "a buffer of the communicator");
    if (status == HPCT_OK)
        status = hpct_nccl_check(comm, calls->allocate_host(&host, HPCT_NCCL_STAGE_BYTES),
                                 "a pinned buffer of the communicator");
    comm->stage = device;
    comm->host_stage = host;
    return status != HPCT_OK ? status
                             : hpct_nccl_job_make(&comm->once, comm, comm->lane, "a collective",
                                                  issue_once, comm, 2);
}

hpct_status hpct_comm_nccl_open(hpct_comm **out, const hpct_nccl_options *options)
{
    nccl_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return hpct_fail_memory(sizeof *comm);
    comm->base = (hpct_comm){
        .ops = &nccl_ops, .rank = options->rank, .size = options->size, .records = true};
    comm->calls = options->calls;
    comm->seconds = options->seconds;
    comm->grace_seconds = options->grace_seconds;
    comm->meet = options->meet;
    comm->argument = options->argument;
    comm->lane = &comm->own_lane;
    pthread_mutex_init(&comm->own_calling, NULL);
    comm->calling = &comm->own_calling;
    comm->breach = &comm->own_breach;
    hpct_status status = hpct_nccl_lane_open(&comm->own_lane, comm);
    if (status == HPCT_OK)
        status = furnish(comm);
    if (status == HPCT_OK)
        status =
            hpct_nccl_channel_open(&comm->channel, comm, options->id, options->size, options->rank);
    if (status != HPCT_OK) {
        free_comm(comm, true);
        return status;
    }
    comm->under = options->under;
    *out = &comm->base;
    return HPCT_OK;
}

/* Rank and size within the part, from the colors of all ranks. */
static hpct_status find_place(nccl_comm *comm, int color, hpct_comm *place)
{
    size_t size = (size_t) comm->base.size;
    int *colors = calloc(size, sizeof *colors);
    if (colors == NULL)
        return hpct_fail_memory(size * sizeof *colors);
    hpct_status status = allgather(&comm->base, &color, colors, sizeof color);
    for (int rank = 0; rank < comm->base.size; rank++) {
        place->size += colors[rank] == color;
        place->rank += colors[rank] == color && rank < comm->base.rank;
    }
    free(colors);
    return status;
}

static hpct_status nccl_split(hpct_comm *base, hpct_comm **out, int color)
{
    nccl_comm *whole = (nccl_comm *) base, *part = calloc(1, sizeof *part);
    if (part == NULL)
        return hpct_fail_memory(sizeof *part);
    part->base.ops = &nccl_ops;
    part->base.records = true;
    part->calls = whole->calls;
    part->seconds = whole->seconds;
    part->grace_seconds = whole->grace_seconds;
    part->meet = whole->meet;
    part->argument = whole->argument;
    part->lane = whole->lane;
    part->calling = whole->calling;
    part->breach = whole->breach;
    hpct_status status = find_place(whole, color, &part->base);
    if (status == HPCT_OK) /* otherwise the others would wait in the split for this rank */
        status = hpct_nccl_break(whole, furnish(part));
    if (status == HPCT_OK)
        status = hpct_nccl_rest(whole);
    if (status == HPCT_OK)
        status = hpct_nccl_channel_split(&part->channel, whole, color, base->rank);
    if (status != HPCT_OK) {
        free_comm(part, true);
        return status;
    }
    *out = &part->base;
    return HPCT_OK;
}
