/* spank/stage/broadcast_link.h - one TCP connection of a broadcast, never blocking: sockets made,
 * frames in and out. Knows nothing of who is who, nor of what the frames mean. */
#ifndef HPCT_STAGE_BROADCAST_LINK_H
#define HPCT_STAGE_BROADCAST_LINK_H

#include <hpctrain/status.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spank/stage/broadcast_wire.h"

typedef struct hpct_stage_link {
    int fd; /* -1: none */
    /* coming in: the header, then data into `data` */
    uint8_t head[HPCT_WIRE_HEADER];
    size_t filled; /* of header and data together */
    hpct_wire_header header;
    uint8_t *data; /* where the data of the frame goes: `letter`, or a block of the caller's */
    uint8_t *letter;
    /* going out, besides blocks */
    uint8_t *out;
    size_t out_size, out_sent, out_room;
    int64_t heard, said; /* milliseconds: when something last came, or went */
} hpct_stage_link;

typedef enum hpct_stage_link_result {
    HPCT_STAGE_LINK_HEADER, /* the header is there: set link->data, or leave it to link->letter */
    HPCT_STAGE_LINK_FRAME,  /* header and data are there, checked */
    HPCT_STAGE_LINK_WAIT,   /* no more has come yet */
    HPCT_STAGE_LINK_CLOSED, /* the other end closed, or the connection broke */
    HPCT_STAGE_LINK_DAMAGED,
} hpct_stage_link_result;

void hpct_stage_link_open(hpct_stage_link *link, int fd);

/* `reset`: at once and without TIME_WAIT, dropping what was not sent. */
void hpct_stage_link_close(hpct_stage_link *link, bool reset);

/* Reads on, to the end of the header first and then to the end of the data. Call
 * hpct_stage_link_next after a FRAME was used. With `most`, headers that announce more are damaged.
 */
hpct_stage_link_result hpct_stage_link_read(hpct_stage_link *link, uint32_t most);
void hpct_stage_link_next(hpct_stage_link *link);

/* Queues a frame; false when out of memory or when the other end has not read for very long. */
bool hpct_stage_link_say(hpct_stage_link *link, hpct_wire_type type, uint64_t sequence,
                         const void *data, uint32_t size);

/* Moves the queue of `other`, which has no connection, behind that of `link`. */
bool hpct_stage_link_follow(hpct_stage_link *link, hpct_stage_link *other);

/* Sends of the queue what the connection takes. False when it is broken. */
bool hpct_stage_link_flush(hpct_stage_link *link);
bool hpct_stage_link_flushed(const hpct_stage_link *link);

/* Sends header and data from `*sent` on, which grows. False when the connection is broken. */
bool hpct_stage_link_send(hpct_stage_link *link, const uint8_t head[HPCT_WIRE_HEADER],
                          const uint8_t *data, size_t size, size_t *sent);

/* A listening socket on all addresses. HPCT_ERR_CONFIG naming the port. */
hpct_status hpct_stage_listen(int port, int *fd);

/* Begins to connect; -1 and errno when that fails at once. */
int hpct_stage_connect(const struct addrinfo *to);

/* Milliseconds of a clock that never jumps back. */
int64_t hpct_stage_now(void);

#endif
