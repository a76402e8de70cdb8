/* The messages of parameter servers: what is accepted is terminated, printable, within bounds, and
 * encodes to the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ps/message.h"
#include "agent/ps/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_text(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char) text[i] < 0x20)
            return 0;
    }
    return length < size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t token[HPCT_TOKEN_BYTES], again[HPCT_PS_MESSAGE_BYTES], third[HPCT_PS_MESSAGE_BYTES];
    hpct_ps_message message, second;
    if (size < HPCT_PS_MESSAGE_BYTES)
        return 0;
    memcpy(token, data + 80, sizeof token); /* else nothing would get past the token */
    if (!hpct_ps_message_decode(&message, data, token))
        return 0;
    if (!is_text(message.node, sizeof message.node) || !is_text(message.text, sizeof message.text))
        abort();
    if (message.type < HPCT_PS_HELLO || message.type >= HPCT_PS_MESSAGE_TYPES ||
        message.task > HPCT_PS_END || message.from >= HPCT_PS_FROMS || (int64_t) message.step < 0 ||
        (int64_t) message.version < 0 || (int64_t) message.bytes < 0)
        abort();
    hpct_ps_message_encode(again, &message, token);
    if (!hpct_ps_message_decode(&second, again, token))
        abort();
    hpct_ps_message_encode(third, &second, token);
    if (memcmp(again, third, sizeof again) != 0)
        abort();
    return 0;
}
