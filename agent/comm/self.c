/* The communicator of a single process: collectives are copies or nothing. */
#include "agent/comm/comm.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static hpct_status allreduce_sum(hpct_comm *comm, float *data, size_t count)
{
    (void) comm;
    (void) data;
    (void) count;
    return HPCT_OK;
}

static hpct_status broadcast(hpct_comm *comm, void *data, size_t bytes, int root)
{
    (void) comm;
    (void) data;
    (void) bytes;
    (void) root;
    return HPCT_OK;
}

static hpct_status allgather(hpct_comm *comm, const void *mine, void *all, size_t bytes)
{
    (void) comm;
    memcpy(all, mine, bytes);
    return HPCT_OK;
}

/* A reduction has no state: all share the object below. */
struct hpct_comm_reduction {
    char nothing;
};
static hpct_comm_reduction only;

static hpct_status prepare(hpct_comm *comm, hpct_comm_reduction **out,
                           const hpct_comm_reduction_options *options)
{
    (void) comm;
    (void) options;
    *out = &only;
    return HPCT_OK;
}

static hpct_status start(hpct_comm_reduction *reduction)
{
    (void) reduction;
    return HPCT_OK;
}

static hpct_status progress(hpct_comm *comm)
{
    (void) comm;
    return HPCT_OK;
}

static bool is_done(const hpct_comm_reduction *reduction)
{
    (void) reduction;
    return true;
}

static void release(hpct_comm_reduction *reduction)
{
    (void) reduction;
}

/* There is no peer: an error. */
static hpct_status open_stream(hpct_comm *comm, hpct_comm_stream **out,
                               const hpct_comm_stream_options *options)
{
    (void) comm;
    (void) out;
    return hpct_fail(HPCT_ERR_INTERNAL, "a stream to rank %d of one alone", options->peer);
}

static void close_stream(hpct_comm_stream *stream)
{
    (void) stream;
}

static hpct_status split(hpct_comm *comm, hpct_comm **out, int color)
{
    (void) comm;
    (void) color;
    return hpct_comm_self_open(out);
}

static void self_free(hpct_comm *comm)
{
    free(comm);
}

static const hpct_comm_ops self_ops = {
    .name = "self",
    .of_hosts = true,
    .allreduce_sum = allreduce_sum,
    .broadcast = broadcast,
    .allgather = allgather,
    .prepare = prepare,
    .start = start,
    .progress = progress,
    .is_done = is_done,
    .wait = start,
    .release = release,
    .open_stream = open_stream,
    .close_stream = close_stream,
    .split = split,
    .close = self_free,
    .abandon = self_free,
};

hpct_status hpct_comm_self_open(hpct_comm **out)
{
    hpct_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return hpct_fail_memory(sizeof *comm);
    comm->ops = &self_ops;
    comm->size = 1;
    *out = comm;
    return HPCT_OK;
}
