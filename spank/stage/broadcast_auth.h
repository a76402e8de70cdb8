/* spank/stage/broadcast_auth.h - who is at the other end: credentials that only a task of the step
 * can make, with the step's key (HMAC-SHA256), or, where nodes stage without Slurm's starting them,
 * only the same user, with munge. Each is bound to the run, to both nodes and their connection, and
 * to numbers that the two ends have just drawn, so that none serves twice. Only here is libmunge
 * called. */
#ifndef HPCT_STAGE_BROADCAST_AUTH_H
#define HPCT_STAGE_BROADCAST_AUTH_H

#include "base/auth/key.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_NONCE_BYTES 32

/* Whether a munged answers on this node. */
bool hpct_auth_is_here(void);

/* What a credential speaks of; both ends know it but for the numbers drawn. */
typedef struct hpct_auth_claim {
    const hpct_key *key;                 /* NULL: munge */
    const char *run;                     /* job.step */
    bool from_listener;                  /* WELCOME, not HELLO */
    uint8_t channel;                     /* which of the connections between the two */
    uint32_t connector, listener;        /* nodes */
    uint8_t challenge[HPCT_NONCE_BYTES]; /* drawn by who listens, sent in the clear */
    uint8_t answer[HPCT_NONCE_BYTES];    /* drawn by who connects, in its credential */
} hpct_auth_claim;

hpct_status hpct_auth_draw(uint8_t nonce[HPCT_NONCE_BYTES]);

/* *credential is to be freed. HPCT_ERR_CONFIG, saying what munge says, when there is none. */
hpct_status hpct_auth_make(const hpct_auth_claim *claim, char **credential);

typedef enum hpct_auth_result {
    HPCT_AUTH_GOOD,
    HPCT_AUTH_STRANGER, /* another user's, or none at all; *why says which */
    HPCT_AUTH_WRONG,    /* ours, but of another run, connection or time */
} hpct_auth_result;

/* Who it is that a HELLO comes from is not known before: its claim's channel, connector and answer
 * are taken from the credential, everything else must be as in *claim. Of a WELCOME everything must
 * be. *why is a static or munge's own text. */
hpct_auth_result hpct_auth_check(const char *credential, size_t size, hpct_auth_claim *claim,
                                 const char **why);

#endif
