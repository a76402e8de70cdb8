/* agent/comm/frame.h - what the watch's connections carry: frames of one fixed size, each sealed.
 * Offers encoding and strict decoding; knows nothing of sockets. */
#ifndef HPCT_COMM_FRAME_H
#define HPCT_COMM_FRAME_H

#include "base/auth/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_FRAME_BYTES 256
#define HPCT_FRAME_NODE 64
#define HPCT_FRAME_TEXT 160

typedef enum hpct_frame_type {
    HPCT_FRAME_HELLO = 1, /* both ways, first of all: the sender's `node` */
    HPCT_FRAME_READY,     /* rank 0 to all: everybody has come */
    HPCT_FRAME_BEAT,      /* both ways, every second: I live, and r to 0: have done so much */
    HPCT_FRAME_BYE,       /* r to 0: I am done; 0 to all: all are done */
    HPCT_FRAME_LOST,      /* 0 to all: `rank` on `node` was lost, and how */
    HPCT_FRAME_ABORT,     /* r to 0, 0 to all: `rank` on `node` ends with `status`, and why */
    HPCT_FRAME_ARRIVED,   /* r to 0: I am at the meeting; 0 to all: so are all */
} hpct_frame_type;

typedef struct hpct_frame {
    hpct_frame_type type;
    uint8_t status; /* ABORT: the exit code; LOST: 1 if it was silent; BEAT: an hpct_waits */
    uint32_t rank;  /* whom it speaks of; BEAT: how much was done (base/headway.h) */
    char node[HPCT_FRAME_NODE]; /* NUL-terminated, printable */
    char text[HPCT_FRAME_TEXT]; /* NUL-terminated, printable */
} hpct_frame;

/* Sealed as the next message of `seal`; false when libcrypto fails. */
bool hpct_frame_encode(uint8_t out[HPCT_FRAME_BYTES], const hpct_frame *frame, hpct_seal *seal);

/* False for anything but what the other end's hpct_frame_encode made, in the order in which it did.
 */
bool hpct_frame_decode(hpct_frame *out, const uint8_t in[HPCT_FRAME_BYTES], hpct_seal *seal);

/* Copies a string field that came; control characters become '?', for it may be printed on a
 * terminal later. False when it is not terminated. */
bool hpct_frame_take_text(char *out, const uint8_t *in, size_t size);

/* Copies text into out[size], cut to fit. */
void hpct_frame_set(char *out, size_t size, const char *text);

#endif
