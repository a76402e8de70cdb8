/* agent/ps/channel.h - one connection between a worker and a parameter server: sends and receives
 * headers, and the floats that follow some of them, without blocking. Independent of roles. */
#ifndef HPCT_AGENT_PS_CHANNEL_H
#define HPCT_AGENT_PS_CHANNEL_H

#include "agent/ps/message.h"
#include "base/net/session.h"

#include <poll.h>
#include <sys/uio.h>

#define HPCT_PS_PIECES 2 /* floats are in at most two ranges: parameters, and states */

typedef struct hpct_ps_channel {
    hpct_net_session session;  /* fd -1: unused */
    int64_t heard_ms, beat_ms; /* times of the last bytes received; of the next heartbeat */
    int silence_ms;            /* a peer that is silent for longer is lost */
    size_t in_filled, out_filled;
    uint8_t in[HPCT_PS_MESSAGE_BYTES], out[8 * HPCT_PS_MESSAGE_BYTES];
    hpct_ps_message message;           /* the message whose floats are being received */
    struct iovec into[HPCT_PS_PIECES]; /* destination of received floats: all of it, each time */
    size_t into_filled, tag_filled;    /* received bytes of the floats, and of their tag */
    struct iovec from[HPCT_PS_PIECES]; /* floats still to be sent, after `out` */
    bool sealing;                      /* their tag follows them */
    uint8_t tag[HPCT_AUTH_SEAL_TAG];
} hpct_ps_channel;

typedef enum hpct_ps_received {
    HPCT_PS_GOT,     /* *message is set, and its floats, if any, are complete */
    HPCT_PS_NOTHING, /* nothing complete yet */
    HPCT_PS_CLOSED,  /* the peer closed, or the connection broke */
    HPCT_PS_GARBAGE, /* invalid or not authentic data */
} hpct_ps_received;

/* Takes ownership of the session. */
void hpct_ps_channel_init(hpct_ps_channel *channel, const hpct_net_session *session);
void hpct_ps_channel_close(hpct_ps_channel *channel);

/* Sends a message, or keeps what the socket does not accept now for hpct_ps_channel_flush. `floats`
 * [HPCT_PS_PIECES], or NULL, must stay valid until they are sent. False if an earlier message's
 * floats or too many messages are still pending. */
bool hpct_ps_channel_send(hpct_ps_channel *channel, const hpct_ps_message *message,
                          const struct iovec *floats);
void hpct_ps_channel_flush(hpct_ps_channel *channel);
bool hpct_ps_channel_sending(const hpct_ps_channel *channel);
struct pollfd hpct_ps_channel_poll(const hpct_ps_channel *channel);

/* Received floats are authenticated by their tag. Their number of bytes must match channel->into;
 * without room there, no message may have floats. */
hpct_ps_received hpct_ps_channel_receive(hpct_ps_channel *channel, hpct_ps_message *message);

/* Sends a heartbeat if one is due and nothing is pending. */
void hpct_ps_channel_beat(hpct_ps_channel *channel, int64_t now);

/* Makes sure that the last messages arrive, for a second at most, and closes: closing a socket with
 * unread input would reset the connection and discard them. */
void hpct_ps_channel_linger(hpct_ps_channel *const *channels, int count);

#endif
