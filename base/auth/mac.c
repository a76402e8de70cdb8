/* HMAC-SHA256. */
#include "base/auth/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

bool hpct_auth_mac_make(uint8_t mac[HPCT_AUTH_MAC_BYTES], const hpct_auth_key *key,
                        const void *text, size_t bytes)
{
    unsigned made = 0;
    return HMAC(EVP_sha256(), key->bytes, HPCT_AUTH_KEY_BYTES, text, bytes, mac, &made) != NULL &&
           made == HPCT_AUTH_MAC_BYTES;
}

bool hpct_auth_mac_check(const uint8_t mac[HPCT_AUTH_MAC_BYTES], const hpct_auth_key *key,
                         const void *text, size_t bytes)
{
    uint8_t right[HPCT_AUTH_MAC_BYTES];
    return hpct_auth_mac_make(right, key, text, bytes) &&
           CRYPTO_memcmp(right, mac, HPCT_AUTH_MAC_BYTES) == 0;
}
