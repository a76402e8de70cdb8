/* The watch's frames: what is accepted is terminated, printable, and encodes to the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/comm/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t token[HPCT_TOKEN_BYTES], again[HPCT_FRAME_BYTES];
    hpct_frame frame, second;
    if (size < HPCT_FRAME_BYTES)
        return 0;
    memcpy(token, data + 16, sizeof token); /* else nothing would get past the token */
    if (!hpct_frame_decode(&frame, data, token))
        return 0;
    if (strnlen(frame.node, sizeof frame.node) == sizeof frame.node ||
        strnlen(frame.text, sizeof frame.text) == sizeof frame.text)
        abort();
    for (const char *c = frame.text; *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20)
            abort();
    }
    hpct_frame_encode(again, &frame, token);
    if (!hpct_frame_decode(&second, again, token) || second.type != frame.type ||
        second.rank != frame.rank || strcmp(second.text, frame.text) != 0)
        abort();
    return 0;
}
