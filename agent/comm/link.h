/* agent/comm/link.h - TCP connections: sockets made, and, for the watch, sealed frames sent and
 * received without ever blocking. Knows nothing of who is who. */
#ifndef HPCT_COMM_LINK_H
#define HPCT_COMM_LINK_H

#include "agent/comm/frame.h"
#include "agent/comm/session.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_link {
    hpct_session session; /* fd -1: not in use */
    size_t in_filled, out_filled;
    uint8_t in[HPCT_FRAME_BYTES];
    uint8_t out[4 * HPCT_FRAME_BYTES];
} hpct_link;

typedef enum hpct_link_result {
    HPCT_LINK_FRAME,   /* *frame is filled */
    HPCT_LINK_NOTHING, /* no whole frame has come yet */
    HPCT_LINK_CLOSED,  /* the other end closed, or the connection broke */
    HPCT_LINK_GARBAGE, /* what came was not sent by the other end like that */
} hpct_link_result;

void hpct_link_init(hpct_link *link, const hpct_session *session); /* taken over */
void hpct_link_close(hpct_link *link);

/* Sends, or keeps for hpct_link_flush what the socket does not take now. A frame that does not fit
 * any more is dropped: the other end has not read for long, and silence will tell. */
void hpct_link_send(hpct_link *link, const hpct_frame *frame);
void hpct_link_flush(hpct_link *link);

hpct_link_result hpct_link_receive(hpct_link *link, hpct_frame *frame);

/* What every connection of messages wants of its socket: that they leave at once. */
void hpct_link_hurry(int fd);

/* A non-blocking listening socket on all of the host's addresses; port 0 picks a free one, which
 * *port then holds. HPCT_ERR_CONFIG when the port is in use or may not be used; `host` is for the
 * message alone. */
hpct_status hpct_link_listen(int *fd, int *port, const char *host, int backlog);

/* Connects to "host:port" within the time; the socket is non-blocking. HPCT_ERR_PEER when nobody
 * answers, HPCT_ERR_CONFIG when the address cannot be understood. */
hpct_status hpct_link_connect(int *fd, const char *address, int timeout_ms);

/* Sends (out) or receives all of data[bytes] before hpct_link_now_ms is until_ms; waits for it.
 * For what both ends say first on a new connection. */
bool hpct_link_pass(int fd, void *data, size_t bytes, bool out, int64_t until_ms);

/* Splits "host:port" or "[v6]:port"; false when it is not of that form. */
bool hpct_link_split_address(const char *address, char *host, size_t host_size, int *port);

/* Milliseconds of a clock that never jumps back. */
int64_t hpct_link_now_ms(void);

#endif
