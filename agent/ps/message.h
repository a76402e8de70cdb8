/* agent/ps/message.h - what workers and parameter servers say to each other: headers of one fixed
 * size, each sealed; PUSH and PARAMS are followed by `bytes` bytes of floats, as both
 * ends have agreed at HELLO, and the tag of these. Offers encoding and strict decoding; knows
 * nothing of sockets. */
#ifndef HPCT_PS_MESSAGE_H
#define HPCT_PS_MESSAGE_H

#include "agent/comm/frame.h"

#define HPCT_PS_MESSAGE_BYTES 384
#define HPCT_PS_TEXT 224

typedef enum hpct_ps_message_type {
    HPCT_PS_HELLO = 1, /* to a server: `from`, its index, its node, the run's `plan` */
    HPCT_PS_WELCOME,   /* from it: its `version` and the bytes of its part */
    HPCT_PS_REFUSED,   /* from it: why in `text`, with `status` */
    HPCT_PS_ITEM,      /* server 0: what to do; END to other servers too, with `signal` */
    HPCT_PS_PULL,      /* to a server: its part, of `version` */
    HPCT_PS_PARAMS,    /* from it; the part follows */
    HPCT_PS_PUSH,      /* to a server: the gradient of `step` and `slice`; it follows */
    HPCT_PS_PUSHED,    /* from it: it has come */
    HPCT_PS_DONE,      /* to server 0: the sums of an item that is done */
    HPCT_PS_SKIPPED,   /* to server 0: an item that is not needed any more */
    HPCT_PS_BEAT,      /* from servers and pulses: I live */
    HPCT_PS_LOST,      /* from whom cannot go on: why in `text` */
    HPCT_PS_BYE,       /* to a server: I leave in order */
    HPCT_PS_MESSAGE_TYPES
} hpct_ps_message_type;

typedef enum hpct_ps_from {
    HPCT_PS_FROM_WORKER, /* its data */
    HPCT_PS_FROM_PULSE,  /* its signs of life */
    HPCT_PS_FROM_LEADER, /* server 0 */
    HPCT_PS_FROMS
} hpct_ps_from;

typedef struct hpct_ps_message {
    hpct_ps_message_type type;
    hpct_ps_from from;
    uint8_t task;   /* hpct_ps_task */
    uint8_t signal; /* that ends the run, or 0 */
    uint8_t status; /* hpct_status */
    uint32_t index; /* of the worker */
    uint32_t slice;
    uint64_t step, version, bytes, plan;
    double loss, correct, in_top_k;
    char node[HPCT_FRAME_NODE]; /* NUL-terminated, printable */
    char text[HPCT_PS_TEXT];    /* NUL-terminated, printable */
} hpct_ps_message;

/* Sealed as the next message of `seal`; false when libcrypto fails. */
bool hpct_ps_message_encode(uint8_t out[HPCT_PS_MESSAGE_BYTES], const hpct_ps_message *message,
                            hpct_seal *seal);

/* False for anything but what the other end's hpct_ps_message_encode made, in its order. */
bool hpct_ps_message_decode(hpct_ps_message *out, const uint8_t in[HPCT_PS_MESSAGE_BYTES],
                            hpct_seal *seal);

#endif
