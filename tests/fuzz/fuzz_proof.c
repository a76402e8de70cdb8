/* The handshake of a connection, in both roles, where the other end says anything at all; with or
 * without the key, which the first byte tells: no more than the message that is due is believed. */
#include "base/auth/mac.h"
#include "base/auth/proof.h"
#include "tests/fuzz/fuzz.h"

#define MAC_AT (HPCT_AUTH_PROOF_HELLO - HPCT_AUTH_MAC_BYTES)

static const hpct_auth_key key = {{1, 2, 3}};
static const hpct_auth auth = {.key = &key, .run = "42.0"};

/* As who has the key would: the HMAC of what is there. */
static void sign(uint8_t hello[HPCT_AUTH_PROOF_HELLO])
{
    uint8_t text[16 + HPCT_AUTH_PROOF_RUN + MAC_AT] = "hpc-train HELLO";
    memcpy(text + 16, auth.run, HPCT_AUTH_PROOF_RUN);
    memcpy(text + 16 + HPCT_AUTH_PROOF_RUN, hello, MAC_AT);
    must(hpct_auth_mac_make(hello + MAC_AT, &key, text, sizeof text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_auth_proof proof;
    uint8_t hello[HPCT_AUTH_PROOF_HELLO], last[HPCT_AUTH_PROOF_LAST];
    if (size < 1 + HPCT_AUTH_PROOF_HELLO + HPCT_AUTH_PROOF_LAST)
        return 0;
    memcpy(hello, data + 1, sizeof hello);
    if (data[0] & 1)
        sign(hello);
    bool heard = hpct_auth_proof_hear(&proof, &auth, 0, hello);
    if (heard && (!(data[0] & 1) || proof.purpose <= 0 || proof.purpose >= HPCT_AUTH_PURPOSES))
        abort();
    if (heard && hpct_auth_proof_believed(&proof, data + 1 + sizeof hello))
        abort();
    if ((data[0] & 2) == 0)
        return 0;
    if (hpct_auth_proof_begin(&proof, &auth, HPCT_AUTH_FOR_PEERS, 1, 0) != HPCT_OK ||
        hpct_auth_proof_answered(&proof, data + 1, last) ||
        hpct_auth_proof_accepted(&proof, data + 1 + sizeof hello))
        abort();
    return 0;
}
