/* Device memory over a communicator for host memory. */
#include "agent/comm/staged.h"

#include "agent/comm/agree.h"
#include "agent/comm/device.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES ((size_t) 4 << 20)

typedef struct staged_comm {
    hpct_comm base;
    hpct_comm *under;
    const hpct_device_calls *calls;
    void *copies;                   /* stream for the copies of reductions */
    void *event;                    /* event for the host's waits */
    char *stage;                    /* [STAGE_BYTES], pinned */
    hpct_comm_reduction *under_way; /* list, in the order of starts */
} staged_comm;

static hpct_status check(const staged_comm *comm, hpct_device_result result, const char *what)
{
    if (result == HPCT_DEVICE_OK || result == HPCT_DEVICE_BUSY)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_INTERNAL, "rank %d: %s: %s", comm->base.rank, what,
                     comm->calls->error());
}

/* Copies after the compute stream's work; returns when done. */
static hpct_status copy_now(const staged_comm *comm, void *dst, const void *src, size_t bytes)
{
    const hpct_device_calls *calls = comm->calls;
    void *stream = calls->compute_stream();
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_DEVICE);
    hpct_device_result result = calls->copy(dst, src, bytes, stream);
    if (result == HPCT_DEVICE_OK)
        result = calls->record(comm->event, stream);
    for (int looks = 0; result == HPCT_DEVICE_OK || result == HPCT_DEVICE_BUSY; looks++) {
        result = calls->query(comm->event);
        if (result != HPCT_DEVICE_BUSY)
            break;
        hpct_comm_nap(looks);
    }
    hpct_enter_wait(before);
    return check(comm, result, "a copy between the GPU and the host");
}

/* ---- operations that are not prepared ---- */

static hpct_status allreduce_sum(hpct_comm *base, float *data, size_t count)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_comm *under = comm->under;
    size_t most = STAGE_BYTES / sizeof *data;
    if (!comm->calls->is_device(data))
        return under->ops->allreduce_sum(under, data, count);
    for (size_t part; count > 0; data += part, count -= part) {
        part = count < most ? count : most;
        HPCT_TRY(copy_now(comm, comm->stage, data, part * sizeof *data));
        HPCT_TRY(under->ops->allreduce_sum(under, (float *) (void *) comm->stage, part));
        HPCT_TRY(copy_now(comm, data, comm->stage, part * sizeof *data));
    }
    return HPCT_OK;
}

static hpct_status broadcast(hpct_comm *base, void *data, size_t bytes, int root)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_comm *under = comm->under;
    char *at = data;
    if (!comm->calls->is_device(data))
        return under->ops->broadcast(under, data, bytes, root);
    for (size_t part; bytes > 0; at += part, bytes -= part) {
        part = bytes < STAGE_BYTES ? bytes : STAGE_BYTES;
        if (base->rank == root)
            HPCT_TRY(copy_now(comm, comm->stage, at, part));
        HPCT_TRY(under->ops->broadcast(under, comm->stage, part, root));
        if (base->rank != root)
            HPCT_TRY(copy_now(comm, at, comm->stage, part));
    }
    return HPCT_OK;
}

static hpct_status allgather(hpct_comm *base, const void *mine, void *all, size_t bytes)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_comm *under = comm->under;
    size_t size = (size_t) base->size, most = STAGE_BYTES / (size + 1), part;
    bool from_device = comm->calls->is_device(mine), to_device = comm->calls->is_device(all);
    if (!from_device && !to_device)
        return under->ops->allgather(under, mine, all, bytes);
    if (most == 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "allgather of device memory over %zu ranks", size);
    for (size_t begin = 0; begin < bytes; begin += part) {
        part = bytes - begin < most ? bytes - begin : most;
        char *gathered = comm->stage + part, *to = (char *) all + begin;
        HPCT_TRY(copy_now(comm, comm->stage, (const char *) mine + begin, part));
        HPCT_TRY(under->ops->allgather(under, comm->stage, gathered, part));
        for (size_t rank = 0; rank < size; rank++)
            HPCT_TRY(copy_now(comm, to + rank * bytes, gathered + rank * part, part));
    }
    return HPCT_OK;
}

/* ---- reductions ---- */

struct hpct_comm_reduction {
    staged_comm *comm;
    hpct_comm_reduction *inner; /* of `under`: for the copy, or the caller's data */
    float *data;                /* the caller's, on the device; NULL: host data */
    size_t bytes;
    float *copy;                /* pinned */
    void *ready, *left, *there; /* events: of the compute stream, of the copies out and back */
    enum { IDLE, LEAVING, TRAVELLING, RETURNING } state;
    hpct_comm_reduction *next;
};

static void release(hpct_comm_reduction *r)
{
    if (r == NULL)
        return;
    const hpct_device_calls *calls = r->comm->calls;
    void *events[] = {r->ready, r->left, r->there};
    if (r->inner != NULL)
        r->comm->under->ops->release(r->inner);
    for (int i = 0; i < 3; i++) {
        if (events[i] != NULL)
            calls->destroy_event(events[i]);
    }
    if (r->copy != NULL)
        calls->release_host(r->copy);
    free(r);
}

static hpct_status prepare(hpct_comm *base, hpct_comm_reduction **out,
                           const hpct_comm_reduction_options *options)
{
    staged_comm *comm = (staged_comm *) base;
    const hpct_device_calls *calls = comm->calls;
    hpct_comm_reduction_options inner = *options;
    hpct_status status = HPCT_OK;
    hpct_comm_reduction *r = calloc(1, sizeof *r);
    if (r == NULL) {
        status = hpct_fail_memory(sizeof *r);
    } else {
        r->comm = comm;
        r->bytes = (options->count + options->exact) * sizeof *options->data;
    }
    if (status == HPCT_OK && r->bytes > 0 && calls->is_device(options->data)) {
        void *memory = NULL;
        status = check(comm, calls->allocate_host(&memory, r->bytes), "pinned memory");
        r->data = options->data;
        r->copy = inner.data = memory;
        void **events[] = {&r->ready, &r->left, &r->there};
        for (int i = 0; i < 3 && status == HPCT_OK; i++)
            status = check(comm, calls->create_event(events[i]), "an event");
    }
    /* either all ranks prepare on the communicator below or none */
    status = hpct_comm_agree(comm->under, status, "prepare a sum");
    if (status == HPCT_OK)
        status = comm->under->ops->prepare(comm->under, &r->inner, &inner);
    if (status != HPCT_OK) {
        if (r != NULL)
            release(r);
        return status;
    }
    *out = r;
    return HPCT_OK;
}

static hpct_status start(hpct_comm_reduction *r)
{
    staged_comm *comm = r->comm;
    const hpct_device_calls *calls = comm->calls;
    hpct_comm_reduction **last = &comm->under_way;
    if (r->data == NULL)
        return comm->under->ops->start(r->inner);
    hpct_device_result result = calls->record(r->ready, calls->compute_stream());
    if (result == HPCT_DEVICE_OK)
        result = calls->wait_event(comm->copies, r->ready);
    if (result == HPCT_DEVICE_OK)
        result = calls->copy(r->copy, r->data, r->bytes, comm->copies);
    if (result == HPCT_DEVICE_OK)
        result = calls->record(r->left, comm->copies);
    while (*last != NULL)
        last = &(*last)->next;
    *last = r;
    r->next = NULL;
    r->state = LEAVING;
    return check(comm, result, "a reduction");
}

static hpct_status advance(hpct_comm_reduction *r)
{
    staged_comm *comm = r->comm;
    const hpct_device_calls *calls = comm->calls;
    const hpct_comm_ops *ops = comm->under->ops;
    hpct_status status = HPCT_OK;
    if (r->state == LEAVING) {
        hpct_device_result left = calls->query(r->left);
        status = check(comm, left, "a reduction");
        if (status != HPCT_OK || left == HPCT_DEVICE_BUSY)
            return status;
        r->state = TRAVELLING;
        status = ops->start(r->inner);
    }
    if (status == HPCT_OK && r->state == TRAVELLING && ops->is_done(r->inner)) {
        hpct_device_result result = calls->copy(r->data, r->copy, r->bytes, comm->copies);
        if (result == HPCT_DEVICE_OK)
            result = calls->record(r->there, comm->copies);
        r->state = RETURNING;
        status = check(comm, result, "a reduction");
    }
    return status;
}

static hpct_status progress(hpct_comm *base)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_status status = comm->under->ops->progress(comm->under);
    for (hpct_comm_reduction **at = &comm->under_way; *at != NULL && status == HPCT_OK;) {
        hpct_comm_reduction *r = *at;
        status = advance(r);
        if (r->state == RETURNING)
            *at = r->next;
        else
            at = &r->next;
    }
    return status;
}

static bool is_done(const hpct_comm_reduction *r)
{
    if (r->data == NULL)
        return r->comm->under->ops->is_done(r->inner);
    return r->state == IDLE ||
           (r->state == RETURNING && r->comm->calls->query(r->there) == HPCT_DEVICE_OK);
}

static hpct_status wait(hpct_comm_reduction *r)
{
    const hpct_device_calls *calls = r->comm->calls;
    hpct_status status = HPCT_OK;
    if (r->data == NULL)
        return r->comm->under->ops->wait(r->inner);
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_DEVICE);
    for (int looks = 0; r->state == LEAVING && status == HPCT_OK; looks++) {
        status = progress(&r->comm->base);
        if (status == HPCT_OK && r->state == LEAVING)
            hpct_comm_nap(looks);
    }
    hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    while (r->state == TRAVELLING && status == HPCT_OK)
        status = progress(&r->comm->base);
    if (status == HPCT_OK && r->state == RETURNING)
        status =
            check(r->comm, calls->wait_event(calls->compute_stream(), r->there), "a reduction");
    hpct_enter_wait(before);
    r->state = IDLE;
    return status;
}

/* ---- streams ---- */

struct hpct_comm_stream {
    staged_comm *comm;
    hpct_comm_stream *inner; /* of `under` */
    hpct_comm_stream_options options;
    int at;
    char *buffers; /* [buffers] of `each` bytes, on the device */
    size_t each;
};

static void close_stream(hpct_comm_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->inner != NULL)
        stream->comm->under->ops->close_stream(stream->inner);
    if (stream->buffers != NULL)
        stream->comm->calls->release(stream->buffers);
    free(stream);
}

static hpct_status open_stream(hpct_comm *base, hpct_comm_stream **out,
                               const hpct_comm_stream_options *options)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_comm_stream *stream = calloc(1, sizeof *stream);
    void *memory = NULL;
    if (stream == NULL)
        return hpct_fail_memory(sizeof *stream);
    stream->comm = comm;
    stream->options = *options;
    stream->each = (options->floats * sizeof(float) + 255) / 256 * 256;
    hpct_status status =
        check(comm, comm->calls->allocate(&memory, stream->each * (size_t) options->buffers + 1),
              "a stream's buffers");
    stream->buffers = memory;
    if (status == HPCT_OK)
        status = comm->under->ops->open_stream(comm->under, &stream->inner, options);
    if (status == HPCT_OK)
        *out = stream;
    else
        close_stream(stream);
    return status;
}

static float *buffer(const hpct_comm_stream *stream)
{
    return (float *) (void *) (stream->buffers + (size_t) stream->at * stream->each);
}

static hpct_status next(hpct_comm_stream *stream, float **data)
{
    const hpct_comm_ops *ops = stream->comm->under->ops;
    float *host = NULL;
    *data = buffer(stream);
    if (!stream->options.receives)
        return HPCT_OK;
    HPCT_TRY(ops->next(stream->inner, &host));
    HPCT_TRY(copy_now(stream->comm, *data, host, stream->options.floats * sizeof *host));
    return ops->pass(stream->inner, 0);
}

static hpct_status pass(hpct_comm_stream *stream, size_t count)
{
    const hpct_comm_ops *ops = stream->comm->under->ops;
    float *host = NULL, *data = buffer(stream);
    stream->at = (stream->at + 1) % stream->options.buffers;
    if (stream->options.receives)
        return HPCT_OK;
    HPCT_TRY(ops->next(stream->inner, &host));
    HPCT_TRY(copy_now(stream->comm, host, data, count * sizeof *host));
    return ops->pass(stream->inner, count);
}

static hpct_status push(hpct_comm_stream *stream)
{
    return stream->comm->under->ops->push(stream->inner);
}

static hpct_status drain(hpct_comm_stream *stream)
{
    return stream->comm->under->ops->drain(stream->inner);
}

/* ---- open, split, close ---- */

static void free_comm(staged_comm *comm, bool abandon)
{
    hpct_comm *under = comm->under;
    if (!abandon) {
        if (comm->copies != NULL)
            comm->calls->destroy_stream(comm->copies);
        if (comm->event != NULL)
            comm->calls->destroy_event(comm->event);
        if (comm->stage != NULL)
            comm->calls->release_host(comm->stage);
    }
    if (under != NULL)
        (abandon ? under->ops->abandon : under->ops->close)(under);
    free(comm);
}

static void staged_close(hpct_comm *comm)
{
    free_comm((staged_comm *) comm, false);
}

static void staged_abandon(hpct_comm *comm)
{
    free_comm((staged_comm *) comm, true);
}

static hpct_status split(hpct_comm *base, hpct_comm **out, int color)
{
    staged_comm *comm = (staged_comm *) base;
    hpct_comm *part = NULL;
    hpct_status status = comm->under->ops->split(comm->under, &part, color);
    if (status == HPCT_OK)
        status = hpct_comm_staged_open(out, part, comm->calls);
    if (status != HPCT_OK && part != NULL)
        part->ops->abandon(part);
    return status;
}

static const hpct_comm_ops staged_ops = {
    .name = "staged",
    .allreduce_sum = allreduce_sum,
    .broadcast = broadcast,
    .allgather = allgather,
    .prepare = prepare,
    .start = start,
    .progress = progress,
    .is_done = is_done,
    .wait = wait,
    .release = release,
    .open_stream = open_stream,
    .next = next,
    .pass = pass,
    .push = push,
    .drain = drain,
    .close_stream = close_stream,
    .split = split,
    .close = staged_close,
    .abandon = staged_abandon,
};

hpct_status hpct_comm_staged_open(hpct_comm **out, hpct_comm *under, const hpct_device_calls *calls)
{
    void *stage = NULL;
    staged_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return hpct_fail_memory(sizeof *comm);
    comm->base = (hpct_comm){.ops = &staged_ops, .rank = under->rank, .size = under->size};
    comm->calls = calls;
    hpct_status status = check(comm, calls->create_stream(&comm->copies), "a stream");
    if (status == HPCT_OK)
        status = check(comm, calls->create_event(&comm->event), "an event");
    if (status == HPCT_OK)
        status = check(comm, calls->allocate_host(&stage, STAGE_BYTES), "pinned memory");
    comm->stage = stage;
    if (status != HPCT_OK) {
        free_comm(comm, false);
        return status;
    }
    comm->under = under;
    *out = &comm->base;
    return HPCT_OK;
}
