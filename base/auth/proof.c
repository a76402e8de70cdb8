/* The four messages, by HMAC-SHA256 and X25519 of libcrypto. */
#include "base/auth/proof.h"

#include "base/auth/mac.h"
#include "base/bytes.h"
#include "base/status.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>

/* HELLO: magic, protocol, purpose, 0, from, to, number, public key, HMAC; big-endian. */
enum {
    AT_PROTOCOL = 4,
    AT_PURPOSE = 5,
    AT_ZERO = 6, /* to 8 */
    AT_FROM = 8,
    AT_TO = 12,
    AT_NUMBER = 16,
    AT_PUBLIC = 48,
    AT_HELLO_MAC = 80,
};
/* ANSWER: number, public key, HMAC. */
enum { AT_ANSWER_PUBLIC = 32, AT_ANSWER_MAC = 64 };
enum { BYTES = 32 }; /* of a random number, a public key, an HMAC */
_Static_assert(BYTES == HPCT_AUTH_MAC_BYTES, "an HMAC");
_Static_assert(AT_HELLO_MAC + BYTES == HPCT_AUTH_PROOF_HELLO, "a HELLO's parts fill it");
_Static_assert(AT_ANSWER_MAC + BYTES == HPCT_AUTH_PROOF_ANSWER, "an ANSWER's parts fill it");

static const uint8_t magic[AT_PROTOCOL] = {'H', 'P', 'C', 'K'};
#define PROTOCOL 1

/* ---- cryptography ---- */

static bool draw(uint8_t *out, size_t bytes)
{
    return getrandom(out, bytes, 0) == (ssize_t) bytes; /* up to 256 bytes are never partial */
}

/* HMAC of: name, NUL, run, of_hello bytes of HELLO, of_answer bytes of ANSWER, then `more`. */
static bool make_mac(uint8_t out[BYTES], const hpct_auth_proof *proof, const char *name,
                     size_t of_hello, size_t of_answer, const uint8_t *more, size_t more_bytes)
{
    uint8_t text[32 + HPCT_AUTH_PROOF_RUN + HPCT_AUTH_PROOF_HELLO + HPCT_AUTH_PROOF_ANSWER + 32];
    size_t length = strlen(name) + 1;
    memcpy(text, name, length);
    memcpy(text + length, proof->auth->run, HPCT_AUTH_PROOF_RUN);
    length += HPCT_AUTH_PROOF_RUN;
    memcpy(text + length, proof->hello, of_hello);
    length += of_hello;
    memcpy(text + length, proof->answer, of_answer);
    length += of_answer;
    if (more_bytes > 0)
        memcpy(text + length, more, more_bytes);
    length += more_bytes;
    bool done = hpct_auth_mac_make(out, proof->auth->key, text, length);
    OPENSSL_cleanse(text, sizeof text);
    return done;
}

static bool same_mac(const uint8_t *came, const hpct_auth_proof *proof, const char *name,
                     size_t of_hello, size_t of_answer)
{
    uint8_t mac[BYTES];
    return make_mac(mac, proof, name, of_hello, of_answer, NULL, 0) &&
           CRYPTO_memcmp(mac, came, BYTES) == 0;
}

static bool draw_pair(uint8_t private_key[BYTES], uint8_t public_key[BYTES])
{
    size_t length = BYTES;
    if (!draw(private_key, BYTES))
        return false;
    EVP_PKEY *pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, BYTES);
    bool done = pair != NULL && EVP_PKEY_get_raw_public_key(pair, public_key, &length) == 1;
    EVP_PKEY_free(pair);
    return done;
}

/* False also for a public key of small order, which would give an all-zero secret. */
static bool agree(uint8_t shared[BYTES], const uint8_t private_key[BYTES],
                  const uint8_t public_key[BYTES])
{
    size_t length = BYTES;
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, BYTES);
    EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, public_key, BYTES);
    EVP_PKEY_CTX *context = own == NULL ? NULL : EVP_PKEY_CTX_new(own, NULL);
    bool done = context != NULL && other != NULL && EVP_PKEY_derive_init(context) == 1 &&
                EVP_PKEY_derive_set_peer(context, other) == 1 &&
                EVP_PKEY_derive(context, shared, &length) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(other);
    EVP_PKEY_free(own);
    return done;
}

/* ---- the connector ---- */

hpct_status hpct_auth_proof_begin(hpct_auth_proof *proof, const hpct_auth *auth,
                                  hpct_auth_purpose purpose, uint32_t from, uint32_t to)
{
    *proof = (hpct_auth_proof){.auth = auth, .purpose = purpose, .from = from, .to = to};
    uint8_t *hello = proof->hello;
    memcpy(hello, magic, sizeof magic);
    hello[AT_PROTOCOL] = PROTOCOL;
    hello[AT_PURPOSE] = (uint8_t) purpose;
    hpct_put(hello + AT_FROM, from, 4);
    hpct_put(hello + AT_TO, to, 4);
    if (!draw(hello + AT_NUMBER, BYTES) || !draw_pair(proof->private_key, hello + AT_PUBLIC) ||
        !make_mac(hello + AT_HELLO_MAC, proof, "hpc-train HELLO", AT_HELLO_MAC, 0, NULL, 0))
        return hpct_fail(HPCT_ERR_INTERNAL, "libcrypto cannot compute the proof of the step's key");
    return HPCT_OK;
}

bool hpct_auth_proof_answered(hpct_auth_proof *proof, const uint8_t answer[HPCT_AUTH_PROOF_ANSWER],
                              uint8_t last[HPCT_AUTH_PROOF_LAST])
{
    memcpy(proof->answer, answer, HPCT_AUTH_PROOF_ANSWER);
    return same_mac(answer + AT_ANSWER_MAC, proof, "hpc-train ANSWER", HPCT_AUTH_PROOF_HELLO,
                    AT_ANSWER_MAC) &&
           agree(proof->shared, proof->private_key, answer + AT_ANSWER_PUBLIC) &&
           make_mac(last, proof, "hpc-train LAST", HPCT_AUTH_PROOF_HELLO, HPCT_AUTH_PROOF_ANSWER,
                    NULL, 0);
}

bool hpct_auth_proof_accepted(const hpct_auth_proof *proof,
                              const uint8_t accept[HPCT_AUTH_PROOF_ACCEPT])
{
    return same_mac(accept, proof, "hpc-train ACCEPT", HPCT_AUTH_PROOF_HELLO,
                    HPCT_AUTH_PROOF_ANSWER);
}

/* ---- the listener ---- */

bool hpct_auth_proof_hear(hpct_auth_proof *proof, const hpct_auth *auth, uint32_t to,
                          const uint8_t hello[HPCT_AUTH_PROOF_HELLO])
{
    *proof = (hpct_auth_proof){.auth = auth,
                               .purpose = (hpct_auth_purpose) hello[AT_PURPOSE],
                               .from = (uint32_t) hpct_get(hello + AT_FROM, 4),
                               .to = to};
    memcpy(proof->hello, hello, HPCT_AUTH_PROOF_HELLO);
    return memcmp(hello, magic, sizeof magic) == 0 && hello[AT_PROTOCOL] == PROTOCOL &&
           hello[AT_PURPOSE] > 0 && hello[AT_PURPOSE] < HPCT_AUTH_PURPOSES &&
           hpct_get(hello + AT_ZERO, 2) == 0 && hpct_get(hello + AT_TO, 4) == to &&
           same_mac(hello + AT_HELLO_MAC, proof, "hpc-train HELLO", AT_HELLO_MAC, 0) &&
           draw(proof->answer, BYTES) &&
           draw_pair(proof->private_key, proof->answer + AT_ANSWER_PUBLIC) &&
           agree(proof->shared, proof->private_key, hello + AT_PUBLIC) &&
           make_mac(proof->answer + AT_ANSWER_MAC, proof, "hpc-train ANSWER", HPCT_AUTH_PROOF_HELLO,
                    AT_ANSWER_MAC, NULL, 0);
}

bool hpct_auth_proof_believed(const hpct_auth_proof *proof,
                              const uint8_t last[HPCT_AUTH_PROOF_LAST])
{
    return same_mac(last, proof, "hpc-train LAST", HPCT_AUTH_PROOF_HELLO, HPCT_AUTH_PROOF_ANSWER);
}

bool hpct_auth_proof_accept(const hpct_auth_proof *proof, uint8_t accept[HPCT_AUTH_PROOF_ACCEPT])
{
    return make_mac(accept, proof, "hpc-train ACCEPT", HPCT_AUTH_PROOF_HELLO,
                    HPCT_AUTH_PROOF_ANSWER, NULL, 0);
}

bool hpct_auth_proof_finish(hpct_auth_proof *proof, hpct_auth_key *to_listener,
                            hpct_auth_key *to_connector)
{
    bool done = make_mac(to_listener->bytes, proof, "hpc-train to the listener",
                         HPCT_AUTH_PROOF_HELLO, HPCT_AUTH_PROOF_ANSWER, proof->shared, BYTES) &&
                make_mac(to_connector->bytes, proof, "hpc-train to the connector",
                         HPCT_AUTH_PROOF_HELLO, HPCT_AUTH_PROOF_ANSWER, proof->shared, BYTES);
    OPENSSL_cleanse(proof, sizeof *proof);
    return done;
}
