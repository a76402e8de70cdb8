/* agent/ps/channel.h - one connection of a worker or a parameter server: headers, and the floats
 * that follow some of them, in and out without blocking. Knows nothing of who is who. */
#ifndef HPCT_PS_CHANNEL_H
#define HPCT_PS_CHANNEL_H

#include "agent/comm/session.h"
#include "agent/ps/message.h"

#include <sys/uio.h>

#define HPCT_PS_PIECES 2        /* floats lie in so many places: parameters, and states */
#define HPCT_PS_BEAT_MS 1000    /* how often there is a sign of life */
#define HPCT_PS_SILENCE_MS 6000 /* who gives none for so long is lost */

typedef struct hpct_ps_channel {
    hpct_session session;      /* fd -1: not in use */
    int64_t heard_ms, beat_ms; /* of the last bytes that came; of the next beat */
    size_t in_filled, out_filled;
    uint8_t in[HPCT_PS_MESSAGE_BYTES], out[8 * HPCT_PS_MESSAGE_BYTES];
    hpct_ps_message message;           /* the one whose floats are coming */
    struct iovec into[HPCT_PS_PIECES]; /* where floats that come go: all of them, each time */
    size_t into_filled, tag_filled;    /* of the floats that are coming, and of their tag */
    struct iovec from[HPCT_PS_PIECES]; /* floats that are still to be sent, behind `out` */
    bool sealing;                      /* and their tag behind them */
    uint8_t tag[HPCT_SEAL_TAG];
} hpct_ps_channel;

typedef enum hpct_ps_received {
    HPCT_PS_GOT,     /* *message is filled, and the floats have come if it has any */
    HPCT_PS_NOTHING, /* not all of it yet */
    HPCT_PS_CLOSED,  /* the other end closed, or the connection broke */
    HPCT_PS_GARBAGE, /* what came was not sent by the other end like that */
} hpct_ps_received;

void hpct_ps_channel_init(hpct_ps_channel *channel, const hpct_session *session); /* taken over */
void hpct_ps_channel_close(hpct_ps_channel *channel);

/* Sends, or keeps for hpct_ps_channel_flush what the socket does not take now. `floats`
 * [HPCT_PS_PIECES], or NULL, must stay until they are sent. False when an earlier message's floats
 * or too many messages are still waiting. */
bool hpct_ps_channel_send(hpct_ps_channel *channel, const hpct_ps_message *message,
                          const struct iovec *floats);
void hpct_ps_channel_flush(hpct_ps_channel *channel);
bool hpct_ps_channel_sending(const hpct_ps_channel *channel);

/* Got floats are those that the other end sent: their tag was right. They must be as many bytes as
 * channel->into has room for; without any, none may. */
hpct_ps_received hpct_ps_channel_receive(hpct_ps_channel *channel, hpct_ps_message *message);

/* A beat, when it is time for one and nothing is waiting to be sent. */
void hpct_ps_channel_beat(hpct_ps_channel *channel, int64_t now);

/* Sees to it that what was sent last arrives, for a second at most, and closes: a socket that is
 * closed with unread input would take it back. */
void hpct_ps_channel_linger(hpct_ps_channel *const *channels, int count);

#endif
