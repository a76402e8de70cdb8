/* Streams over NCCL: a ring of buffers on the device at each end. Messages to higher ranks and
 * those to lower ranks each have a communicator and a CUDA stream, so that a chain of ranks cannot
 * deadlock. NCCL requires equal counts at both ends: every message has the maximal size. */
#include "agent/comm/nccl_comm.h"
#include "base/status.h"

#include <stdlib.h>

/* One buffer, and the message in it. */
typedef struct slot {
    hpct_comm_stream *stream;
    float *data; /* [floats], on the device */
    nccl_job job;
} slot;

struct hpct_comm_stream {
    nccl_comm *comm;
    nccl_direction *direction;
    hpct_comm_stream_options options;
    int at; /* index of the current buffer */
    void *memory;
    slot *slots; /* [buffers] */
};

/* nccl_issue */
static hpct_device_result issue(void *argument, int part, nccl_channel **used)
{
    const slot *s = argument;
    const hpct_comm_stream *stream = s->stream;
    const hpct_comm_stream_options *o = &stream->options;
    const hpct_device_calls *calls = stream->comm->calls;
    void *nccl = stream->direction->channel->nccl, *queue = stream->direction->lane.stream;
    (void) part;
    *used = stream->direction->channel;
    return o->receives ? calls->receive(s->data, o->floats, HPCT_DEVICE_FP32, o->peer, nccl, queue)
                       : calls->send(s->data, o->floats, HPCT_DEVICE_FP32, o->peer, nccl, queue);
}

/* One message from the previous rank and one to the next, if there are such. */
typedef struct greeting {
    nccl_comm *comm;
    nccl_direction *direction;
    int way; /* 1: up, -1: down */
} greeting;

/* nccl_issue */
static hpct_device_result issue_greeting(void *argument, int part, nccl_channel **used)
{
    const greeting *g = argument;
    const nccl_comm *comm = g->comm;
    void *nccl = g->direction->channel->nccl, *queue = g->direction->lane.stream;
    float *stage = (float *) (void *) comm->stage;
    int peer = part == 0 ? comm->base.rank - g->way : comm->base.rank + g->way;
    if (peer < 0 || peer >= comm->base.size)
        return HPCT_DEVICE_OK;
    *used = g->direction->channel;
    return part == 0 ? comm->calls->receive(stage, 1, HPCT_DEVICE_FP32, peer, nccl, queue)
                     : comm->calls->send(stage + 1, 1, HPCT_DEVICE_FP32, peer, nccl, queue);
}

/* Sends one float to each neighbour: NCCL connects two ranks at their first message, which may wait
 * for the device. Later, the device would wait for a message that waits for this connection. */
static hpct_status greet(nccl_comm *comm, nccl_direction *direction, int way)
{
    greeting g = {.comm = comm, .direction = direction, .way = way};
    nccl_job job;
    hpct_status status = hpct_nccl_job_make(
        &job, comm, &direction->lane, "connecting neighbouring stages", issue_greeting, &g, 2);
    if (status == HPCT_OK)
        status = hpct_nccl_queue(&job);
    if (status == HPCT_OK)
        status = hpct_nccl_finish(&job);
    hpct_nccl_forget(&job);
    hpct_nccl_job_free(&job);
    return status;
}

/* Both directions at once: ranks differ in which one they need first. Collective. */
static hpct_status open_directions(nccl_comm *comm)
{
    nccl_direction *directions[] = {&comm->up, &comm->down};
    hpct_status status = hpct_nccl_rest(comm);
    for (int i = 0; i < 2 && status == HPCT_OK; i++) {
        status = hpct_nccl_break(comm, hpct_nccl_lane_open(&directions[i]->lane, comm));
        if (status == HPCT_OK)
            status = hpct_nccl_channel_split(&directions[i]->channel, comm, 0, comm->base.rank);
    }
    for (int i = 0; i < 2 && status == HPCT_OK; i++)
        status = greet(comm, directions[i], i == 0 ? 1 : -1);
    return status;
}

static hpct_status furnish(hpct_comm_stream *stream)
{
    nccl_comm *comm = stream->comm;
    const hpct_comm_stream_options *o = &stream->options;
    size_t each = (o->floats * sizeof(float) + 255) / 256 * 256, num = (size_t) o->buffers;
    stream->slots = calloc(num, sizeof *stream->slots);
    if (stream->slots == NULL)
        return hpct_fail_memory(num * sizeof *stream->slots);
    hpct_status status =
        hpct_nccl_check(comm, comm->calls->allocate(&stream->memory, num * each + 1), "a stream");
    for (size_t i = 0; i < num && status == HPCT_OK; i++) {
        slot *s = &stream->slots[i];
        s->stream = stream;
        s->data = (float *) (void *) ((char *) stream->memory + i * each);
        status = hpct_nccl_job_make(&s->job, comm, &stream->direction->lane,
                                    o->receives ? "a message from another stage"
                                                : "a message to another stage",
                                    issue, s, 1);
    }
    return status;
}

hpct_status hpct_nccl_open_stream(hpct_comm *base, hpct_comm_stream **out,
                                  const hpct_comm_stream_options *options)
{
    nccl_comm *comm = (nccl_comm *) base;
    hpct_comm_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return hpct_fail_memory(sizeof *stream);
    stream->comm = comm;
    stream->options = *options;
    bool up = options->receives ? options->peer < base->rank : options->peer > base->rank;
    stream->direction = up ? &comm->up : &comm->down;
    hpct_status status = comm->up.channel == NULL ? open_directions(comm) : HPCT_OK;
    if (status == HPCT_OK)
        status = furnish(stream);
    if (status == HPCT_OK)
        *out = stream;
    else
        hpct_nccl_close_stream(stream);
    return status;
}

/* A receive is ordered after the last reader of the buffer; a send buffer is free after its
 * previous message. */
hpct_status hpct_nccl_next(hpct_comm_stream *stream, float **data)
{
    slot *s = &stream->slots[stream->at];
    hpct_status status = stream->options.receives ? hpct_nccl_queue(&s->job) : HPCT_OK;
    *data = s->data;
    return status == HPCT_OK ? hpct_nccl_follow(&s->job) : status;
}

hpct_status hpct_nccl_pass(hpct_comm_stream *stream, size_t count)
{
    slot *s = &stream->slots[stream->at];
    if (!stream->options.receives && count > stream->options.floats)
        return hpct_fail(HPCT_ERR_INTERNAL, "a message of %zu floats in a stream of %zu", count,
                         stream->options.floats);
    stream->at = (stream->at + 1) % stream->options.buffers;
    return stream->options.receives ? HPCT_OK : hpct_nccl_queue(&s->job);
}

hpct_status hpct_nccl_push(hpct_comm_stream *stream)
{
    return hpct_nccl_pump(stream->comm);
}

hpct_status hpct_nccl_drain(hpct_comm_stream *stream)
{
    for (int i = 0; i < stream->options.buffers; i++)
        HPCT_TRY(hpct_nccl_finish(&stream->slots[i].job));
    return HPCT_OK;
}

void hpct_nccl_close_stream(hpct_comm_stream *stream)
{
    if (stream == NULL)
        return;
    bool ended = true;
    for (int i = 0; stream->slots != NULL && i < stream->options.buffers; i++) {
        nccl_job *job = &stream->slots[i].job;
        hpct_nccl_forget(job);
        if (job->done == NULL || hpct_nccl_ended(job))
            hpct_nccl_job_free(job);
        else
            ended = false; /* see hpct_nccl_release */
    }
    if (ended && stream->memory != NULL)
        stream->comm->calls->release(stream->memory);
    free(stream->slots);
    free(stream);
}
