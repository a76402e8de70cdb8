/* base/net/link.h - TCP connections: creates sockets, and sends and receives authenticated frames
 * without blocking. Independent of ranks. */
#ifndef HPCT_BASE_NET_LINK_H
#define HPCT_BASE_NET_LINK_H

#include "base/clock.h"
#include "base/net/frame.h"
#include "base/net/session.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct hpct_net_link {
    hpct_net_session session; /* fd -1: unused */
    size_t in_filled, out_filled;
    uint8_t in[HPCT_NET_FRAME_BYTES];
    uint8_t out[4 * HPCT_NET_FRAME_BYTES];
} hpct_net_link;

typedef enum hpct_net_link_result {
    HPCT_NET_LINK_FRAME,   /* *frame is filled */
    HPCT_NET_LINK_NOTHING, /* no complete frame yet */
    HPCT_NET_LINK_CLOSED,  /* the peer closed, or the connection broke */
    HPCT_NET_LINK_GARBAGE, /* the data is not authentic */
} hpct_net_link_result;

void hpct_net_link_init(hpct_net_link *link,
                        const hpct_net_session *session); /* ownership is taken */
void hpct_net_link_close(hpct_net_link *link);

/* Sends, or buffers for hpct_net_link_flush what the socket does not accept. A frame that does not
 * fit is dropped: the peer has not read for long and will be detected as silent. */
void hpct_net_link_send(hpct_net_link *link, const hpct_net_frame *frame);
void hpct_net_link_flush(hpct_net_link *link);

hpct_net_link_result hpct_net_link_receive(hpct_net_link *link, hpct_net_frame *frame);

/* Interval of heartbeats; how long an outage of the network may be that ranks survive; and the
 * pause after which TCP sends lost data again. */
#define HPCT_NET_LINK_BEAT_MS 500
#define HPCT_NET_LINK_OUTAGE_MS 6000
#define HPCT_NET_LINK_REPEAT_MS 1000
#define HPCT_NET_LINK_SILENCE                                                                      \
    "no heartbeat for more than 6 s (stopped, or its node or the network is down)"

/* Non-blocking sockets: one that listens on all addresses, for both families if the host has IPv6,
 * and one that starts to connect. Connections have no delay, and from Linux 6.15 on at most this
 * pause until lost data is sent again (1000 or more); TCP gives up after 13 of them. -1 and errno.
 */
int hpct_net_link_open(int port, int backlog, int repeat_ms);
int hpct_net_link_begin_connect(const struct sockaddr_storage *to, socklen_t size, int repeat_ms);

/* How long a connected peer may be silent, so that it is still heard after an outage. Without that
 * limit each pause is twice as long as the last: up to as long after an outage as it lasted. */
int hpct_net_link_silence_ms(int fd, int outage_ms);

/* A non-blocking socket listening on all addresses; port 0 picks a free one, returned in *port.
 * HPCT_ERR_CONFIG if the port is in use or not permitted; `host` is only for the message. */
hpct_status hpct_net_link_listen(int *fd, int *port, const char *host, int backlog);

/* Connects to "host:port"; the socket is non-blocking. The timeout is that of the name service, and
 * of each of the host's addresses. HPCT_ERR_PEER with errno if no address can be reached,
 * HPCT_ERR_CONFIG for a malformed address. */
hpct_status hpct_net_link_connect(int *fd, const char *address, int timeout_ms);

/* Sends (out) or receives all of data[bytes] before until_ms, blocking. For the first messages of a
 * connection. */
bool hpct_net_link_pass(int fd, void *data, size_t bytes, bool out, int64_t until_ms);

/* Splits "host:port" or "[v6]:port"; false if malformed. */
bool hpct_net_link_split_address(const char *address, char *host, size_t host_size, int *port);

#endif
