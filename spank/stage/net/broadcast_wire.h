/* spank/stage/net/broadcast_wire.h - frames of a broadcast: a header and up to a block of data,
 * with length, sequence number and checksum. Encodes and strictly decodes; independent of sockets,
 * credentials and contents. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_WIRE_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_WIRE_HEADER 32
#define HPCT_BLOCK_BYTES (256u << 10) /* maximum of a data frame */
#define HPCT_LETTER_BYTES (1u << 20)  /* maximum of other frames */
#define HPCT_GREETING_BYTES 4096u     /* maximum before authentication */

typedef enum hpct_wire_type {
    HPCT_WIRE_CHALLENGE = 1, /* listener: challenge with a nonce */
    HPCT_WIRE_HELLO,         /* connector: a credential */
    HPCT_WIRE_WELCOME,       /* listener: a credential */
    HPCT_WIRE_BLOCK,         /* data, along a tree; empty: the end */
    HPCT_WIRE_LETTER,        /* from node 0 to all */
    HPCT_WIRE_GATHER,        /* from all to node 0, combined on the way */
    HPCT_WIRE_FAIL,          /* to all: this node failed, with status and reason */
    HPCT_WIRE_BEAT,          /* both ways, every other second: heartbeat */
    HPCT_WIRE_BYE,           /* the connection closes next, without error */
} hpct_wire_type;

typedef struct hpct_wire_header {
    hpct_wire_type type;
    uint32_t size;     /* of the data behind the header */
    uint64_t sequence; /* of the block, or of the message within its type */
    uint64_t hash;     /* XXH3 of the data */
} hpct_wire_header;

/* Sets the hash of `data` and writes the header. */
void hpct_wire_encode(uint8_t out[HPCT_WIRE_HEADER], hpct_wire_header *header, const void *data);

/* The same with the hash already in the header. */
void hpct_wire_encode_again(uint8_t out[HPCT_WIRE_HEADER], const hpct_wire_header *header);

/* False unless hpct_wire_encode could have written it, with at most the data its type allows.
 * Verify received data with hpct_wire_check. */
bool hpct_wire_decode(hpct_wire_header *out, const uint8_t in[HPCT_WIRE_HEADER]);
bool hpct_wire_check(const hpct_wire_header *header, const void *data);

/* Contents of a FAIL frame. */
typedef struct hpct_wire_failure {
    uint32_t node;
    uint8_t status;
    char text[1024]; /* NUL-terminated, printable */
} hpct_wire_failure;

#define HPCT_WIRE_FAILURE_MAX (5 + sizeof((hpct_wire_failure *) NULL)->text)

size_t hpct_wire_put_failure(uint8_t out[HPCT_WIRE_FAILURE_MAX], const hpct_wire_failure *failure);
bool hpct_wire_get_failure(hpct_wire_failure *out, const uint8_t *in, size_t size);

/* Big-endian integers. */
void hpct_wire_put32(uint8_t *out, uint32_t value);
void hpct_wire_put64(uint8_t *out, uint64_t value);
uint32_t hpct_wire_get32(const uint8_t *in);
uint64_t hpct_wire_get64(const uint8_t *in);

#endif
