/* Credentials as text. With a key: the claim and its HMAC, in hexadecimal digits. With libmunge:
 * the claim is the payload, which munged encrypts and, as the credential is restricted to our own
 * user, decodes for no other user. */
#include <config.h>

#include "spank/stage/net/broadcast_auth.h"

#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/auth/mac.h"
#include "base/bytes.h"
#include "base/status.h"
#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/net/broadcast_team.h"

enum {
    AT_MAGIC = 0,
    AT_KIND = 8,
    AT_CHANNEL = 9,
    AT_CONNECTOR = 10,
    AT_LISTENER = 14,
    AT_CHALLENGE = 18,
    AT_ANSWER = AT_CHALLENGE + HPCT_STAGE_NONCE_BYTES,
    AT_RUN = AT_ANSWER + HPCT_STAGE_NONCE_BYTES,
    CLAIM_BYTES = AT_RUN + HPCT_STAGE_MAX_RUN_NAME + 1,
};

static const char magic[] = {'h', 'p', 'c', 't', 's', 't', 'g', '1'};

static void write_claim(uint8_t out[CLAIM_BYTES], const hpct_stage_auth_claim *claim)
{
    memset(out, 0, CLAIM_BYTES);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_KIND] = claim->from_listener ? 2 : 1;
    out[AT_CHANNEL] = claim->channel;
    hpct_put(out + AT_CONNECTOR, claim->connector, 4);
    hpct_put(out + AT_LISTENER, claim->listener, 4);
    memcpy(out + AT_CHALLENGE, claim->challenge, HPCT_STAGE_NONCE_BYTES);
    memcpy(out + AT_ANSWER, claim->answer, HPCT_STAGE_NONCE_BYTES);
    memcpy(out + AT_RUN, claim->run, strnlen(claim->run, HPCT_STAGE_MAX_RUN_NAME));
}

hpct_status hpct_stage_auth_draw(uint8_t nonce[HPCT_STAGE_NONCE_BYTES])
{
    if (getrandom(nonce, HPCT_STAGE_NONCE_BYTES, 0) != HPCT_STAGE_NONCE_BYTES)
        return hpct_fail(HPCT_ERR_INTERNAL, "no random numbers");
    return HPCT_OK;
}

bool hpct_stage_auth_is_here(void)
{
    char *credential = NULL;
    munge_err_t error = munge_encode(&credential, NULL, NULL, 0);
    free(credential);
    return error != EMUNGE_SOCKET;
}

/* ---- with the step's key ---- */

enum { KEYED_BYTES = CLAIM_BYTES + HPCT_AUTH_MAC_BYTES };

static hpct_status make_keyed(const uint8_t payload[CLAIM_BYTES], const hpct_auth_key *key,
                              char **credential)
{
    uint8_t bytes[KEYED_BYTES];
    memcpy(bytes, payload, CLAIM_BYTES);
    *credential = malloc(2 * KEYED_BYTES + 1);
    if (*credential == NULL ||
        !hpct_auth_mac_make(bytes + CLAIM_BYTES, key, payload, CLAIM_BYTES)) {
        free(*credential);
        *credential = NULL;
        return hpct_fail(HPCT_ERR_INTERNAL, "no credential can be made with the step's key");
    }
    for (int i = 0; i < KEYED_BYTES; i++)
        snprintf(*credential + 2 * i, 3, "%02x", bytes[i]);
    return HPCT_OK;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static hpct_stage_auth_result read_keyed(uint8_t payload[CLAIM_BYTES], const hpct_auth_key *key,
                                         const char *credential, size_t size, const char **why)
{
    uint8_t bytes[KEYED_BYTES];
    *why = "it does not have this step's key";
    if (size != sizeof bytes * 2)
        return HPCT_STAGE_AUTH_STRANGER;
    for (int i = 0; i < KEYED_BYTES; i++) {
        int high = digit(credential[2 * i]), low = digit(credential[2 * i + 1]);
        if (high < 0 || low < 0)
            return HPCT_STAGE_AUTH_STRANGER;
        bytes[i] = (uint8_t) (high << 4 | low);
    }
    memcpy(payload, bytes, CLAIM_BYTES);
    return hpct_auth_mac_check(bytes + CLAIM_BYTES, key, bytes, CLAIM_BYTES)
               ? HPCT_STAGE_AUTH_GOOD
               : HPCT_STAGE_AUTH_STRANGER;
}

/* ---- with munge ---- */

static hpct_status make_munge(const uint8_t payload[CLAIM_BYTES], char **credential)
{
    munge_ctx_t context = munge_ctx_create();
    if (context == NULL)
        return hpct_fail_memory(0);
    munge_err_t error = munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (error == EMUNGE_SUCCESS)
        error = munge_encode(credential, context, payload, CLAIM_BYTES);
    hpct_status status = HPCT_OK;
    if (error != EMUNGE_SUCCESS) {
        const char *text = munge_ctx_strerror(context);
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "munge makes no credential: %s; nodes can only send data to each other "
                           "where munged runs, else use --hpc-train-stage-mode=copy",
                           text != NULL ? text : munge_strerror(error));
    }
    munge_ctx_destroy(context);
    return status;
}

static hpct_stage_auth_result read_munge(uint8_t payload[CLAIM_BYTES], const char *credential,
                                         size_t size, const char **why)
{
    int length = 0;
    uid_t uid = (uid_t) -1;
    void *opaque = NULL;
    hpct_stage_auth_result result = HPCT_STAGE_AUTH_GOOD;
    char *text = strndup(credential, size);
    if (text == NULL) {
        *why = "out of memory";
        return HPCT_STAGE_AUTH_STRANGER;
    }
    munge_err_t error = munge_decode(text, NULL, &opaque, &length, &uid, NULL);
    if (error != EMUNGE_SUCCESS) {
        *why = munge_strerror(error);
        result = error == EMUNGE_CRED_REPLAYED || error == EMUNGE_CRED_EXPIRED ||
                         error == EMUNGE_CRED_REWOUND
                     ? HPCT_STAGE_AUTH_WRONG
                     : HPCT_STAGE_AUTH_STRANGER;
    } else if (uid != geteuid()) {
        *why = "it is another user's";
        result = HPCT_STAGE_AUTH_STRANGER;
    } else if (length != CLAIM_BYTES) {
        *why = "its credential was made for something else";
        result = HPCT_STAGE_AUTH_WRONG;
    } else {
        memcpy(payload, opaque, CLAIM_BYTES);
    }
    if (opaque != NULL)
        memset(opaque, 0, (size_t) length);
    free(opaque);
    free(text);
    return result;
}

/* ---- both kinds ---- */

hpct_status hpct_stage_auth_make(const hpct_stage_auth_claim *claim, char **credential)
{
    uint8_t payload[CLAIM_BYTES];
    write_claim(payload, claim);
    return claim->key != NULL ? make_keyed(payload, claim->key, credential)
                              : make_munge(payload, credential);
}

hpct_stage_auth_result hpct_stage_auth_check(const char *credential, size_t size,
                                             hpct_stage_auth_claim *claim, const char **why)
{
    uint8_t payload[CLAIM_BYTES] = {0}, want[CLAIM_BYTES];
    hpct_stage_auth_result result = claim->key != NULL
                                        ? read_keyed(payload, claim->key, credential, size, why)
                                        : read_munge(payload, credential, size, why);
    if (result != HPCT_STAGE_AUTH_GOOD)
        return result;
    if (memcmp(payload, magic, sizeof magic) != 0) {
        *why = "its credential was made for something else";
        return HPCT_STAGE_AUTH_WRONG;
    }
    if (!claim->from_listener) {
        claim->channel = payload[AT_CHANNEL];
        claim->connector = (uint32_t) hpct_get(payload + AT_CONNECTOR, 4);
        memcpy(claim->answer, payload + AT_ANSWER, HPCT_STAGE_NONCE_BYTES);
    }
    write_claim(want, claim);
    *why = memcmp(payload + AT_RUN, want + AT_RUN, CLAIM_BYTES - AT_RUN) != 0
               ? "it is of another job or step"
               : "its credential was made for another connection";
    return memcmp(payload, want, sizeof want) == 0 ? HPCT_STAGE_AUTH_GOOD : HPCT_STAGE_AUTH_WRONG;
}
