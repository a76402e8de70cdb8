/* agent/ps/message.h - messages between workers and parameter servers: headers of fixed size, each
 * sealed; PUSH and PARAMS are followed by `bytes` bytes of floats, as agreed at HELLO, and their
 * tag. Offers encoding and strict decoding; independent of sockets. */
#ifndef HPCT_AGENT_PS_MESSAGE_H
#define HPCT_AGENT_PS_MESSAGE_H

#include "base/net/frame.h"

#define HPCT_PS_MESSAGE_BYTES 416
#define HPCT_PS_TEXT 224
#define HPCT_PS_PARTS 7 /* of a step, as hpct_train_pace_part has them */

typedef enum hpct_ps_message_type {
    HPCT_PS_HELLO = 1, /* to a server: `from`, its index, its node, the run's `plan`, and in `text`
                          its brief (agent/train/identity.h) */
    HPCT_PS_WELCOME,   /* from a server: the size of its part; from server 0 in `step` the number of
                          epochs done before */
    HPCT_PS_REFUSED,   /* from a server: the reason in `text`; or, with `slice`, the number of a key
                          of the run's identity, from 1, its value there */
    /* from server 0: a worker's next item, with the learning `rate` of its step; END, also to other
     * servers, with `signal`, and in `step` 1 if a checkpoint was saved */
    HPCT_PS_ITEM,
    HPCT_PS_PULL,   /* to a server: requests its part, of `version`; from server 0 its arena `slice`
                       (hpct_ps_run_arena) */
    HPCT_PS_PARAMS, /* from a server: its part follows */
    /* to a server: the gradient of `step` and `slice` follows, with its item's `rate`; from server
     * 0 the content of its arena `slice`, after `step` optimizer steps, and their `version` */
    HPCT_PS_PUSH,
    HPCT_PS_PUSHED,  /* from a server: acknowledges PUSH */
    HPCT_PS_DONE,    /* to server 0: the sums of a completed item, and a step's `parts` */
    HPCT_PS_SKIPPED, /* to server 0: an item that is not needed any more */
    HPCT_PS_BEAT,    /* heartbeat of servers and pulses */
    HPCT_PS_LOST,    /* the sender cannot continue: the reason in `text` */
    HPCT_PS_BYE,     /* to a server: the sender leaves in order */
    HPCT_PS_MESSAGE_TYPES
} hpct_ps_message_type;

typedef enum hpct_ps_from {
    HPCT_PS_FROM_WORKER, /* a worker's data connection */
    HPCT_PS_FROM_PULSE,  /* a worker's heartbeats */
    HPCT_PS_FROM_LEADER, /* server 0 */
    HPCT_PS_FROMS
} hpct_ps_from;

typedef struct hpct_ps_message {
    hpct_ps_message_type type;
    hpct_ps_from from;
    uint8_t task;   /* hpct_ps_task */
    uint8_t signal; /* signal that ends the run, or 0 */
    uint32_t index; /* of the worker */
    uint32_t slice;
    uint64_t step, version, bytes, plan;
    double loss, correct, in_top_k;
    double rate;                    /* of learning; 0: the schedule's */
    float parts[HPCT_PS_PARTS];     /* ms, and MB of memory */
    char node[HPCT_NET_FRAME_NODE]; /* NUL-terminated, printable */
    char text[HPCT_PS_TEXT];        /* NUL-terminated, printable */
} hpct_ps_message;

/* Encodes and seals as the next message of `seal`; false if libcrypto fails. */
bool hpct_ps_message_encode(uint8_t out[HPCT_PS_MESSAGE_BYTES], const hpct_ps_message *message,
                            hpct_auth_seal *seal);

/* False unless the peer's hpct_ps_message_encode made it, in the same order. */
bool hpct_ps_message_decode(hpct_ps_message *out, const uint8_t in[HPCT_PS_MESSAGE_BYTES],
                            hpct_auth_seal *seal);

#endif
