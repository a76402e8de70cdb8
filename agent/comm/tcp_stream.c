/* Streams over TCP: a ring of buffers at each end, used in turn, each with a letter. A message
 * whose buffer is not free remains in the socket, which in time blocks its sender. */
#include "agent/comm/tcp_comm.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdlib.h>

struct hpct_comm_stream {
    tcp_comm *tcp;
    hpct_comm_stream_options options;
    int at;                    /* index of the current buffer */
    float *data;               /* [buffers][floats + 1] */
    hpct_comm_letter *letters; /* [buffers] */
};

/* A letter has at least one byte: an empty message is sent as one float that is ignored. */
static size_t bytes_of(size_t floats)
{
    return (floats > 0 ? floats : 1) * sizeof(float);
}

static hpct_status prepare_letters(hpct_comm_stream *stream)
{
    const hpct_comm_stream_options *o = &stream->options;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < o->buffers && status == HPCT_OK; i++) {
        stream->letters[i] =
            (hpct_comm_letter){.rank = o->peer,
                               .receives = o->receives,
                               .early = true,
                               .up_to = true,
                               .tag = (uint32_t) o->number << 16 | (uint32_t) i,
                               .data = (char *) (stream->data + (size_t) i * (o->floats + 1)),
                               .bytes = bytes_of(o->floats),
                               .through = !o->receives}; /* a sender's buffers are free */
        if (o->receives)
            status = hpct_comm_mail_expect(stream->tcp->streams, &stream->letters[i]);
    }
    return status;
}

hpct_status hpct_tcp_open_stream(hpct_comm *comm, hpct_comm_stream **out,
                                 const hpct_comm_stream_options *options)
{
    size_t buffers = (size_t) options->buffers;
    hpct_comm_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return hpct_fail_memory(sizeof *stream);
    stream->tcp = (tcp_comm *) comm;
    stream->options = *options;
    stream->data = calloc(buffers * (options->floats + 1), sizeof *stream->data);
    stream->letters = calloc(buffers, sizeof *stream->letters);
    hpct_status status = stream->data != NULL && stream->letters != NULL
                             ? prepare_letters(stream)
                             : hpct_fail_memory(buffers * options->floats * sizeof *stream->data);
    if (status == HPCT_OK)
        *out = stream;
    else
        hpct_tcp_close_stream(stream);
    return status;
}

static hpct_status wait_for(hpct_comm_stream *stream, const hpct_comm_letter *letter)
{
    tcp_world *world = stream->tcp->world;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = letter->through ? HPCT_OK : hpct_tcp_move(world, false);
    while (status == HPCT_OK && !letter->through)
        status = hpct_tcp_move(world, true);
    hpct_enter_wait(before);
    return status;
}

hpct_status hpct_tcp_next(hpct_comm_stream *stream, float **data)
{
    hpct_comm_letter *letter = &stream->letters[stream->at];
    hpct_status status = HPCT_OK;
    if (stream->options.receives)
        status = hpct_comm_mail_start(stream->tcp->streams, letter);
    *data = (float *) (void *) letter->data;
    return status == HPCT_OK ? wait_for(stream, letter) : status;
}

hpct_status hpct_tcp_pass(hpct_comm_stream *stream, size_t count)
{
    hpct_comm_letter *letter = &stream->letters[stream->at];
    stream->at = (stream->at + 1) % stream->options.buffers;
    hpct_comm_mail_renew(letter);
    if (stream->options.receives)
        return HPCT_OK;
    letter->bytes = bytes_of(count);
    return hpct_comm_mail_start(stream->tcp->streams, letter);
}

hpct_status hpct_tcp_push(hpct_comm_stream *stream)
{
    return stream->options.receives ? HPCT_OK : hpct_tcp_move(stream->tcp->world, false);
}

hpct_status hpct_tcp_drain(hpct_comm_stream *stream)
{
    for (int i = 0; i < stream->options.buffers && !stream->options.receives; i++)
        HPCT_TRY(wait_for(stream, &stream->letters[i]));
    return HPCT_OK;
}

void hpct_tcp_close_stream(hpct_comm_stream *stream)
{
    if (stream == NULL)
        return;
    for (int i = 0; stream->letters != NULL && i < stream->options.buffers; i++) {
        if (stream->letters[i].data != NULL)
            hpct_comm_mail_forget(stream->tcp->streams, &stream->letters[i]);
    }
    free(stream->letters);
    free(stream->data);
    free(stream);
}
