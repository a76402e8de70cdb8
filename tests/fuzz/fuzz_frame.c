/* The watch's frames, sealed as the other end would: what is accepted is terminated, printable, and
 * encodes to the same again. */
#include "base/net/frame.h"
#include "tests/fuzz/fuzz.h"

#define AT_TAG 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_auth_seal *out, *in;
    const hpct_auth_key key = {{1}};
    uint8_t sealed[HPCT_NET_FRAME_BYTES], again[HPCT_NET_FRAME_BYTES];
    hpct_net_frame frame, second;
    if (size < HPCT_NET_FRAME_BYTES)
        return 0;
    if (in == NULL &&
        (hpct_auth_seal_new(&out, &key) != HPCT_OK || hpct_auth_seal_new(&in, &key) != HPCT_OK))
        abort();
    memcpy(sealed, data, sizeof sealed);
    hpct_auth_seal_add(out, sealed, AT_TAG);
    hpct_auth_seal_add(out, sealed + AT_TAG + HPCT_AUTH_SEAL_TAG,
                       sizeof sealed - AT_TAG - HPCT_AUTH_SEAL_TAG);
    must(hpct_auth_seal_end(out, sealed + AT_TAG));
    if (!hpct_net_frame_decode(&frame, sealed, in))
        return 0;
    if (strnlen(frame.node, sizeof frame.node) == sizeof frame.node ||
        strnlen(frame.text, sizeof frame.text) == sizeof frame.text)
        abort();
    for (const char *c = frame.text; *c != '\0'; c++) {
        must((unsigned char) *c >= 0x20);
    }
    if (!hpct_net_frame_encode(again, &frame, out) || !hpct_net_frame_decode(&second, again, in) ||
        second.type != frame.type || second.rank != frame.rank ||
        strcmp(second.text, frame.text) != 0)
        abort();
    return 0;
}
