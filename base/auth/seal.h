/* base/auth/seal.h - one direction of a connection whose ends know each other: each message gets a
 * tag that only the other end can have made, and that holds for this message's place in the order
 * alone, so that none can be changed, left out, repeated or swapped unnoticed. What is sealed stays
 * readable.
 *
 * GMAC (NIST SP 800-38D), which is AES-256-GCM over text that is not encrypted, of libcrypto; the
 * nonce is the message's number. */
#ifndef HPCT_AUTH_SEAL_H
#define HPCT_AUTH_SEAL_H

#include "base/auth/key.h"

#include <stddef.h>

#define HPCT_SEAL_TAG 16

typedef struct hpct_seal hpct_seal;

hpct_status hpct_seal_new(hpct_seal **out, const hpct_key *key);
void hpct_seal_free(hpct_seal *seal); /* allows NULL */

/* A message in pieces: any number of adds, then its tag, made or checked; the next one begins. A
 * check that fails, or libcrypto failing, is false for this message and all that follow. */
void hpct_seal_add(hpct_seal *seal, const void *data, size_t bytes);
bool hpct_seal_end(hpct_seal *seal, uint8_t tag[HPCT_SEAL_TAG]);
bool hpct_seal_check(hpct_seal *seal, const uint8_t tag[HPCT_SEAL_TAG]);

#endif
