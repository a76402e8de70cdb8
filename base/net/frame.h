/* base/net/frame.h - frames of the heartbeat connections: fixed size, authenticated. Encodes and
 * strictly decodes; independent of sockets. */
#ifndef HPCT_BASE_NET_FRAME_H
#define HPCT_BASE_NET_FRAME_H

#include "base/auth/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_NET_FRAME_BYTES 256
#define HPCT_NET_FRAME_NODE 64
#define HPCT_NET_FRAME_TEXT 160

typedef enum hpct_net_frame_type {
    HPCT_NET_FRAME_HELLO = 1, /* both ways, first: the sender's `node` */
    HPCT_NET_FRAME_READY,     /* rank 0 to all: all ranks are connected */
    HPCT_NET_FRAME_BEAT,      /* both ways, twice a second: heartbeat; r to 0 with its progress */
    HPCT_NET_FRAME_BYE,       /* r to 0: done; 0 to all: all are done */
    HPCT_NET_FRAME_LOST,      /* 0 to all: `rank` on `node` was lost, and how */
    HPCT_NET_FRAME_ABORT,     /* r to 0, 0 to all: `rank` on `node` ends with `status`, and why */
    HPCT_NET_FRAME_ARRIVED,   /* r to 0: at the barrier; 0 to all: all are */
    HPCT_NET_FRAME_NETWORK,   /* spank/agree/network_frames.h */
    HPCT_NET_FRAME_ADDRESSES, /* as well */
    HPCT_NET_NUM_FRAMES,
} hpct_net_frame_type;

typedef struct hpct_net_frame {
    hpct_net_frame_type type;
    uint8_t status; /* ABORT: exit code; LOST: 1 if it was silent; BEAT: an hpct_waits */
    uint32_t rank;  /* rank it is about; BEAT: progress (base/progress.h) */
    char node[HPCT_NET_FRAME_NODE]; /* NUL-terminated, printable */
    char text[HPCT_NET_FRAME_TEXT]; /* NUL-terminated, printable */
} hpct_net_frame;

/* Authenticated as the next message of `seal`; false if libcrypto fails. */
bool hpct_net_frame_encode(uint8_t out[HPCT_NET_FRAME_BYTES], const hpct_net_frame *frame,
                           hpct_auth_seal *seal);

/* False unless made by the other end's hpct_net_frame_encode, in order. */
bool hpct_net_frame_decode(hpct_net_frame *out, const uint8_t in[HPCT_NET_FRAME_BYTES],
                           hpct_auth_seal *seal);

/* Copies a received string; control characters become '?', as it may be printed on a terminal.
 * False if not terminated. */
bool hpct_net_frame_take_text(char *out, const uint8_t *in, size_t size);

/* Copies text into out[size], truncated to fit. */
void hpct_net_frame_set(char *out, size_t size, const char *text);

#endif
