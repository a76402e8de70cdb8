/* spank/stage/net/broadcast_auth.h - authentication of peers: credentials made with the step's key
 * (HMAC-SHA256), or, if nodes stage without Slurm, with munge for the same user. Each is bound to
 * the run, both nodes, the connection, and nonces of both ends, so that none can be replayed. Only
 * user of libmunge. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_AUTH_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_AUTH_H

#include "base/auth/key.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_STAGE_NONCE_BYTES 32

/* Whether munged responds on this node. */
bool hpct_stage_auth_is_here(void);

/* Contents of a credential; known to both ends except for the nonces. */
typedef struct hpct_stage_auth_claim {
    const hpct_auth_key *key;                  /* NULL: munge */
    const char *run;                           /* job.step */
    bool from_listener;                        /* true: for WELCOME; false: for HELLO */
    uint8_t channel;                           /* which of the connections between the two */
    uint32_t connector, listener;              /* node indices */
    uint8_t challenge[HPCT_STAGE_NONCE_BYTES]; /* nonce of the listener, sent in the clear */
    uint8_t answer[HPCT_STAGE_NONCE_BYTES];    /* nonce of the connector, in its credential */
} hpct_stage_auth_claim;

hpct_status hpct_stage_auth_draw(uint8_t nonce[HPCT_STAGE_NONCE_BYTES]);

/* *credential is to be freed. Returns HPCT_ERR_CONFIG with munge's message if it cannot be made. */
hpct_status hpct_stage_auth_make(const hpct_stage_auth_claim *claim, char **credential);

typedef enum hpct_stage_auth_result {
    HPCT_STAGE_AUTH_GOOD,
    HPCT_STAGE_AUTH_STRANGER, /* of another user, or invalid; *why says which */
    HPCT_STAGE_AUTH_WRONG,    /* valid, but of another run, connection or time */
} hpct_stage_auth_result;

/* The sender of a HELLO is not known in advance: channel, connector and answer are taken from the
 * credential; everything else must match *claim. Of a WELCOME everything must match. *why is static
 * or munge's text. */
hpct_stage_auth_result hpct_stage_auth_check(const char *credential, size_t size,
                                             hpct_stage_auth_claim *claim, const char **why);

#endif
