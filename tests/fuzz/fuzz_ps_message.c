/* The messages of parameter servers: what is accepted is terminated, printable, within bounds, with
 * a finite learning rate and times, and encodes to the same again. */
#include <math.h>

#include "agent/ps/message.h"
#include "agent/ps/schedule.h"
#include "tests/fuzz/fuzz.h"

static int is_text(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char) text[i] < 0x20)
            return 0;
    }
    return length < size;
}

#define AT_TAG 112

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static hpct_auth_seal *out, *in;
    const hpct_auth_key key = {{1}};
    uint8_t sealed[HPCT_PS_MESSAGE_BYTES], again[HPCT_PS_MESSAGE_BYTES],
        third[HPCT_PS_MESSAGE_BYTES];
    hpct_ps_message message, second;
    if (size < HPCT_PS_MESSAGE_BYTES)
        return 0;
    if (in == NULL &&
        (hpct_auth_seal_new(&out, &key) != HPCT_OK || hpct_auth_seal_new(&in, &key) != HPCT_OK))
        abort();
    memcpy(sealed, data, sizeof sealed);
    hpct_auth_seal_add(out, sealed, AT_TAG);
    hpct_auth_seal_add(out, sealed + AT_TAG + HPCT_AUTH_SEAL_TAG,
                       sizeof sealed - AT_TAG - HPCT_AUTH_SEAL_TAG);
    must(hpct_auth_seal_end(out, sealed + AT_TAG));
    if (!hpct_ps_message_decode(&message, sealed, in))
        return 0;
    if (!is_text(message.node, sizeof message.node) || !is_text(message.text, sizeof message.text))
        abort();
    if (message.type < HPCT_PS_HELLO || message.type >= HPCT_PS_MESSAGE_TYPES ||
        message.task > HPCT_PS_END || message.from >= HPCT_PS_FROMS || (int64_t) message.step < 0 ||
        (int64_t) message.version < 0 || (int64_t) message.bytes < 0)
        abort();
    if (!isfinite(message.rate) || message.rate < 0)
        abort();
    for (int i = 0; i < HPCT_PS_PARTS; i++) {
        if (!isfinite(message.parts[i]) || message.parts[i] < 0)
            abort();
    }
    if (!hpct_ps_message_encode(again, &message, out) ||
        !hpct_ps_message_decode(&second, again, in) ||
        !hpct_ps_message_encode(third, &second, out) || !hpct_ps_message_decode(&second, third, in))
        abort();
    memset(again + AT_TAG, 0, HPCT_AUTH_SEAL_TAG);
    memset(third + AT_TAG, 0, HPCT_AUTH_SEAL_TAG);
    must(memcmp(again, third, sizeof again) == 0);
    return 0;
}
