/* spank/stage/net/broadcast_link.h - frames of a broadcast, and the non-blocking TCP connections
 * that they travel on. A frame is a header and up to a block of data, with length, sequence number
 * and checksum; it is encoded and strictly decoded. Independent of credentials, roles and contents.
 */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_LINK_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_LINK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define HPCT_STAGE_WIRE_HEADER 32
#define HPCT_STAGE_BLOCK_BYTES (256u << 10) /* maximum of a data frame */
#define HPCT_STAGE_LETTER_BYTES (1u << 20)  /* maximum of other frames */
#define HPCT_STAGE_GREETING_BYTES 4096u     /* maximum before authentication */

typedef enum hpct_stage_wire_type {
    HPCT_STAGE_WIRE_CHALLENGE = 1, /* listener: challenge with a nonce */
    HPCT_STAGE_WIRE_HELLO,         /* connector: a credential */
    HPCT_STAGE_WIRE_WELCOME,       /* listener: a credential */
    HPCT_STAGE_WIRE_BLOCK,         /* data, along a tree; empty: the end */
    HPCT_STAGE_WIRE_LETTER,        /* from node 0 to all */
    HPCT_STAGE_WIRE_GATHER,        /* from all to node 0, combined on the way */
    HPCT_STAGE_WIRE_FAIL,          /* to all: this node failed, with status and reason */
    HPCT_STAGE_WIRE_BEAT,          /* both ways, every other second: heartbeat */
    HPCT_STAGE_WIRE_BYE,           /* the connection closes next, without error */
} hpct_stage_wire_type;

typedef struct hpct_stage_wire_header {
    hpct_stage_wire_type type;
    uint32_t size;     /* of the data behind the header */
    uint64_t sequence; /* of the block, or of the message within its type */
    uint64_t hash;     /* XXH3 of the data */
} hpct_stage_wire_header;

/* Sets the hash of `data` and writes the header. */
void hpct_stage_wire_encode(uint8_t out[HPCT_STAGE_WIRE_HEADER], hpct_stage_wire_header *header,
                            const void *data);

/* The same with the hash already in the header. */
void hpct_stage_wire_encode_again(uint8_t out[HPCT_STAGE_WIRE_HEADER],
                                  const hpct_stage_wire_header *header);

/* False unless hpct_stage_wire_encode could have written it, with at most the data its type allows.
 * Verify received data with hpct_stage_wire_check. */
bool hpct_stage_wire_decode(hpct_stage_wire_header *out, const uint8_t in[HPCT_STAGE_WIRE_HEADER]);
bool hpct_stage_wire_check(const hpct_stage_wire_header *header, const void *data);

/* Contents of a FAIL frame. */
typedef struct hpct_stage_wire_failure {
    uint32_t node;
    uint8_t status;
    char text[1024]; /* NUL-terminated, printable */
} hpct_stage_wire_failure;

#define HPCT_STAGE_WIRE_FAILURE_MAX (5 + sizeof((hpct_stage_wire_failure *) NULL)->text)

size_t hpct_stage_wire_put_failure(uint8_t out[HPCT_STAGE_WIRE_FAILURE_MAX],
                                   const hpct_stage_wire_failure *failure);
bool hpct_stage_wire_get_failure(hpct_stage_wire_failure *out, const uint8_t *in, size_t size);

/* A broadcast survives longer outages of the network than training, so TCP must not give up as
 * early. */
#define HPCT_STAGE_OUTAGE_MS 30000
#define HPCT_STAGE_REPEAT_MS 3000

typedef struct hpct_stage_link {
    int fd; /* -1: none */
    /* receiving: the header, then data into `data` */
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    size_t filled; /* of header and data together */
    hpct_stage_wire_header header;
    uint8_t *data; /* buffer for the frame's data: `letter`, or a block of the caller's */
    uint8_t *letter;
    /* sending, besides blocks */
    uint8_t *out;
    size_t out_size, out_sent, out_room;
    int64_t received_at, sent_at; /* milliseconds: time of the last receive and send */
    int silence;                  /* milliseconds: a peer that is silent for longer is lost */
} hpct_stage_link;

typedef enum hpct_stage_link_result {
    HPCT_STAGE_LINK_HEADER, /* header received: set link->data, or keep link->letter */
    HPCT_STAGE_LINK_FRAME,  /* header and data received and verified */
    HPCT_STAGE_LINK_WAIT,   /* nothing more has arrived */
    HPCT_STAGE_LINK_CLOSED, /* the peer closed, or the connection broke */
    HPCT_STAGE_LINK_DAMAGED,
} hpct_stage_link_result;

void hpct_stage_link_open(hpct_stage_link *link, int fd);

/* `reset`: at once without TIME_WAIT, discarding unsent data. */
void hpct_stage_link_close(hpct_stage_link *link, bool reset);

/* Reads to the end of the header, then of the data. Call hpct_stage_link_next after using a FRAME.
 * With `most`, headers that announce more are errors. */
hpct_stage_link_result hpct_stage_link_read(hpct_stage_link *link, uint32_t most);
void hpct_stage_link_next(hpct_stage_link *link);

/* Queues a frame; false if out of memory or if the peer has not read for very long. */
bool hpct_stage_link_queue(hpct_stage_link *link, hpct_stage_wire_type type, uint64_t sequence,
                           const void *data, uint32_t size);

/* Appends the queue of `other`, which has no connection, to that of `link`. */
bool hpct_stage_link_follow(hpct_stage_link *link, hpct_stage_link *other);

/* Sends queued frames as far as the socket accepts. False if the connection is broken. */
bool hpct_stage_link_flush(hpct_stage_link *link);
bool hpct_stage_link_flushed(const hpct_stage_link *link);

/* Sends header and data from `*sent` on, which advances. False if the connection is broken. */
bool hpct_stage_link_send(hpct_stage_link *link, const uint8_t head[HPCT_STAGE_WIRE_HEADER],
                          const uint8_t *data, size_t size, size_t *sent);

#endif
