/* Streams over MPI: a ring of buffers at each end, used in turn; each has a request. Receives are
 * persistent and posted in advance, so that messages are received into their buffer; sends have the
 * message's actual size. The watch ends the process if a peer is lost or stops. */
#include "agent/comm/mpi_comm.h"
#include "base/progress.h"
#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE 2000 /* calls with sched_yield before it sleeps */
#define NAP_NANOSECONDS 50000

struct hpct_comm_stream {
    mpi_comm *mpi;
    hpct_comm_stream_options options;
    int at;                /* index of the current buffer */
    float *data;           /* [buffers][floats] */
    MPI_Request *requests; /* [buffers] */
};

static hpct_status check(const hpct_comm_stream *stream, int code)
{
    char what[64];
    if (code == MPI_SUCCESS)
        return HPCT_OK;
    snprintf(what, sizeof what, "a message %s rank %d", stream->options.receives ? "from" : "to",
             stream->options.peer);
    return hpct_mpi_check(code, what);
}

static float *buffer(const hpct_comm_stream *stream, int i)
{
    return stream->data + (size_t) i * stream->options.floats;
}

static hpct_status ask_ahead(hpct_comm_stream *stream)
{
    const hpct_comm_stream_options *o = &stream->options;
    for (int i = 0; i < o->buffers; i++)
        HPCT_TRY(check(stream, MPI_Recv_init(buffer(stream, i), (int) o->floats, MPI_FLOAT, o->peer,
                                             o->number, stream->mpi->group, &stream->requests[i])));
    for (int i = 0; i < o->buffers; i++)
        HPCT_TRY(check(stream, MPI_Start(&stream->requests[i])));
    return HPCT_OK;
}

hpct_status hpct_mpi_open_stream(hpct_comm *comm, hpct_comm_stream **out,
                                 const hpct_comm_stream_options *options)
{
    if (options->floats > INT_MAX)
        return hpct_fail(HPCT_ERR_CONFIG, "a message of %zu floats to or from rank %d is too large",
                         options->floats, options->peer);
    size_t buffers = (size_t) options->buffers;
    hpct_comm_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return hpct_fail_memory(sizeof *stream);
    stream->mpi = (mpi_comm *) comm;
    stream->mpi->streams++;
    stream->options = *options;
    stream->data = calloc(buffers * options->floats + 1, sizeof *stream->data);
    stream->requests = calloc(buffers, sizeof *stream->requests);
    hpct_status status = stream->data != NULL && stream->requests != NULL
                             ? HPCT_OK
                             : hpct_fail_memory(buffers * options->floats * sizeof *stream->data);
    for (size_t i = 0; status == HPCT_OK && i < buffers; i++)
        stream->requests[i] = MPI_REQUEST_NULL;
    if (status == HPCT_OK && options->receives)
        status = ask_ahead(stream);
    if (status == HPCT_OK)
        *out = stream;
    else
        hpct_mpi_close_stream(stream);
    return status;
}

/* Yields, as other ranks on this core may have to produce the message. */
static hpct_status wait_for(hpct_comm_stream *stream, int i)
{
    int arrived = 0;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = HPCT_OK;
    for (int looks = 0; status == HPCT_OK && !arrived; looks++) {
        if (looks > PATIENCE)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
        status = check(stream, MPI_Test(&stream->requests[i], &arrived, MPI_STATUS_IGNORE));
    }
    hpct_enter_wait(before);
    return status;
}

hpct_status hpct_mpi_next(hpct_comm_stream *stream, float **data)
{
    *data = buffer(stream, stream->at);
    return wait_for(stream, stream->at);
}

hpct_status hpct_mpi_pass(hpct_comm_stream *stream, size_t count)
{
    const hpct_comm_stream_options *o = &stream->options;
    int at = stream->at;
    stream->at = (at + 1) % o->buffers;
    return check(stream, o->receives
                             ? MPI_Start(&stream->requests[at])
                             : MPI_Isend(buffer(stream, at), (int) count, MPI_FLOAT, o->peer,
                                         o->number, stream->mpi->group, &stream->requests[at]));
}

hpct_status hpct_mpi_push(hpct_comm_stream *stream)
{
    int ignored;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < stream->options.buffers && !stream->options.receives && status == HPCT_OK;
         i++) {
        if (stream->requests[i] != MPI_REQUEST_NULL)
            status = check(stream, MPI_Test(&stream->requests[i], &ignored, MPI_STATUS_IGNORE));
    }
    return status;
}

hpct_status hpct_mpi_drain(hpct_comm_stream *stream)
{
    for (int i = 0; i < stream->options.buffers && !stream->options.receives; i++)
        HPCT_TRY(wait_for(stream, i));
    return HPCT_OK;
}

/* Cancels the receives that were posted in advance. */
void hpct_mpi_close_stream(hpct_comm_stream *stream)
{
    if (stream == NULL)
        return;
    for (int i = 0; stream->requests != NULL && i < stream->options.buffers; i++) {
        if (stream->requests[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&stream->requests[i]);
        MPI_Request_free(&stream->requests[i]);
    }
    stream->mpi->streams--;
    free(stream->requests);
    free(stream->data);
    free(stream);
}
