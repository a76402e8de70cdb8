/* GMAC by libcrypto. */
#include "base/auth/seal.h"

#include "base/bytes.h"
#include "base/status.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define NONCE 12
#define MOST ((size_t) 1 << 30) /* bytes at a time: libcrypto counts in int */

struct hpct_auth_seal {
    EVP_CIPHER_CTX *context;
    uint64_t number; /* of the message */
    bool begun, broken;
};

hpct_status hpct_auth_seal_new(hpct_auth_seal **out, const hpct_auth_key *key)
{
    hpct_auth_seal *seal = calloc(1, sizeof *seal);
    if (seal == NULL)
        return hpct_fail_memory(sizeof *seal);
    seal->context = EVP_CIPHER_CTX_new();
    if (seal->context == NULL ||
        EVP_EncryptInit_ex(seal->context, EVP_aes_256_gcm(), NULL, key->bytes, NULL) != 1) {
        hpct_auth_seal_free(seal);
        return hpct_fail(HPCT_ERR_INTERNAL, "libcrypto has no AES-256-GCM to seal messages with");
    }
    *out = seal;
    return HPCT_OK;
}

void hpct_auth_seal_free(hpct_auth_seal *seal)
{
    if (seal == NULL)
        return;
    EVP_CIPHER_CTX_free(seal->context);
    free(seal);
}

static void begin(hpct_auth_seal *seal)
{
    uint8_t nonce[NONCE] = {0};
    hpct_put(nonce + NONCE - 8, seal->number, 8);
    seal->begun = true;
    if (EVP_EncryptInit_ex(seal->context, NULL, NULL, NULL, nonce) != 1)
        seal->broken = true;
}

void hpct_auth_seal_add(hpct_auth_seal *seal, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    if (!seal->begun)
        begin(seal);
    while (bytes > 0 && !seal->broken) {
        int part = (int) (bytes < MOST ? bytes : MOST), none;
        if (EVP_EncryptUpdate(seal->context, NULL, &none, at, part) != 1)
            seal->broken = true;
        at += part;
        bytes -= (size_t) part;
    }
}

bool hpct_auth_seal_end(hpct_auth_seal *seal, uint8_t tag[HPCT_AUTH_SEAL_TAG])
{
    uint8_t nothing[16];
    int none;
    if (!seal->begun)
        begin(seal);
    if (!seal->broken &&
        (EVP_EncryptFinal_ex(seal->context, nothing, &none) != 1 ||
         EVP_CIPHER_CTX_ctrl(seal->context, EVP_CTRL_GCM_GET_TAG, HPCT_AUTH_SEAL_TAG, tag) != 1))
        seal->broken = true;
    if (seal->broken)
        memset(tag, 0, HPCT_AUTH_SEAL_TAG);
    seal->number++;
    seal->begun = false;
    return !seal->broken;
}

bool hpct_auth_seal_check(hpct_auth_seal *seal, const uint8_t tag[HPCT_AUTH_SEAL_TAG])
{
    uint8_t right[HPCT_AUTH_SEAL_TAG];
    bool good =
        hpct_auth_seal_end(seal, right) && CRYPTO_memcmp(right, tag, HPCT_AUTH_SEAL_TAG) == 0;
    seal->broken = !good;
    return good;
}
