/* spank/stage/broadcast_wire.h - what the connections of a broadcast carry: frames of a header and
 * up to a block of data, each with length, number and checksum. Offers encoding and strict
 * decoding; knows nothing of sockets, credentials, or of what the data means. */
#ifndef HPCT_STAGE_BROADCAST_WIRE_H
#define HPCT_STAGE_BROADCAST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_WIRE_HEADER 32
#define HPCT_BLOCK_BYTES (256u << 10) /* the most that a frame of data holds */
#define HPCT_LETTER_BYTES (1u << 20)  /* the most that another frame holds */
#define HPCT_GREETING_BYTES 4096u     /* the most before the other end is known */

typedef enum hpct_wire_type {
    HPCT_WIRE_CHALLENGE = 1, /* who listens: prove who you are, with this in it */
    HPCT_WIRE_HELLO,         /* who connects: a credential */
    HPCT_WIRE_WELCOME,       /* who listens: a credential */
    HPCT_WIRE_BLOCK,         /* data, on the connections of a tree; empty: the end */
    HPCT_WIRE_TELL,          /* from node 0 to all */
    HPCT_WIRE_GATHER,        /* from all to node 0, combined on the way */
    HPCT_WIRE_FAIL,          /* to all: this node fails, with this status, because of this */
    HPCT_WIRE_BEAT,          /* both ways, every other second: I live */
    HPCT_WIRE_BYE,           /* the connection closes next, and all is well */
} hpct_wire_type;

typedef struct hpct_wire_header {
    hpct_wire_type type;
    uint32_t size;     /* of the data behind the header */
    uint64_t sequence; /* of the block, or of the message among those of its type */
    uint64_t hash;     /* XXH3 of the data */
} hpct_wire_header;

/* Fills in the hash of `data` and writes the header. */
void hpct_wire_encode(uint8_t out[HPCT_WIRE_HEADER], hpct_wire_header *header, const void *data);

/* The same, with the hash that the header has already. */
void hpct_wire_encode_again(uint8_t out[HPCT_WIRE_HEADER], const hpct_wire_header *header);

/* False for anything that hpct_wire_encode would not have written, or with more data than a frame
 * of its type may have. The data is checked with hpct_wire_check when it has come. */
bool hpct_wire_decode(hpct_wire_header *out, const uint8_t in[HPCT_WIRE_HEADER]);
bool hpct_wire_check(const hpct_wire_header *header, const void *data);

/* What a frame of FAIL says. */
typedef struct hpct_wire_failure {
    uint32_t node;
    uint8_t status;
    char text[1024]; /* NUL-terminated, printable */
} hpct_wire_failure;

#define HPCT_WIRE_FAILURE_MAX (5 + sizeof((hpct_wire_failure *) NULL)->text)

size_t hpct_wire_put_failure(uint8_t out[HPCT_WIRE_FAILURE_MAX], const hpct_wire_failure *failure);
bool hpct_wire_get_failure(hpct_wire_failure *out, const uint8_t *in, size_t size);

/* Big-endian numbers. */
void hpct_wire_put32(uint8_t *out, uint32_t value);
void hpct_wire_put64(uint8_t *out, uint64_t value);
uint32_t hpct_wire_get32(const uint8_t *in);
uint64_t hpct_wire_get64(const uint8_t *in);

#endif
