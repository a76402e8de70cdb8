/* base/auth/mac.h - HMAC-SHA256 (RFC 2104) by libcrypto. */
#ifndef HPCT_BASE_AUTH_MAC_H
#define HPCT_BASE_AUTH_MAC_H

#include "base/auth/key.h"

#include <stddef.h>

#define HPCT_AUTH_MAC_BYTES 32

/* Returns false if libcrypto fails or, when checking, if the values differ; comparison is
 * constant-time. */
bool hpct_auth_mac_make(uint8_t mac[HPCT_AUTH_MAC_BYTES], const hpct_auth_key *key,
                        const void *text, size_t bytes);
bool hpct_auth_mac_check(const uint8_t mac[HPCT_AUTH_MAC_BYTES], const hpct_auth_key *key,
                         const void *text, size_t bytes);

#endif
