/* base/auth/seal.h - message authentication codes for one direction of an authenticated connection.
 * A code is valid for one message at one position, so that modified, dropped, repeated or reordered
 * messages are detected. Messages are not encrypted.
 *
 * GMAC (NIST SP 800-38D), i.e. AES-256-GCM without plaintext, from libcrypto; the nonce is the
 * message's number. */
#ifndef HPCT_BASE_AUTH_SEAL_H
#define HPCT_BASE_AUTH_SEAL_H

#include "base/auth/key.h"

#include <stddef.h>

#define HPCT_AUTH_SEAL_TAG 16

typedef struct hpct_auth_seal hpct_auth_seal;

hpct_status hpct_auth_seal_new(hpct_auth_seal **out, const hpct_auth_key *key);
void hpct_auth_seal_free(hpct_auth_seal *seal); /* NULL is allowed */

/* A message in pieces: any number of adds, then its tag is computed or checked; the next message
 * begins. After a failed check, or a failure of libcrypto, this and all later messages return
 * false. */
void hpct_auth_seal_add(hpct_auth_seal *seal, const void *data, size_t bytes);
bool hpct_auth_seal_end(hpct_auth_seal *seal, uint8_t tag[HPCT_AUTH_SEAL_TAG]);
bool hpct_auth_seal_check(hpct_auth_seal *seal, const uint8_t tag[HPCT_AUTH_SEAL_TAG]);

#endif
