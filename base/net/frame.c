/* Frames of the heartbeat connections: big-endian, 256 bytes: magic, version, type, status, 0,
 * rank, 0, authentication code of the rest, node, text. */
#include "base/net/frame.h"

#include "base/bytes.h"
#include "base/progress.h"

#include <string.h>

enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_TYPE = 5,
    AT_STATUS = 6,
    AT_ZERO = 7,
    AT_RANK = 8,
    AT_TAG = 16,
    AT_NODE = AT_TAG + HPCT_AUTH_SEAL_TAG,
    AT_TEXT = AT_NODE + HPCT_NET_FRAME_NODE,
};
_Static_assert(AT_TEXT + HPCT_NET_FRAME_TEXT == HPCT_NET_FRAME_BYTES, "a frame's parts fill it");

static const uint8_t magic[4] = {'H', 'P', 'C', 'W'};
#define VERSION 2

void hpct_net_frame_set(char *out, size_t size, const char *text)
{
    size_t length = text == NULL ? 0 : strnlen(text, size - 1);
    memset(out, 0, size);
    if (length > 0)
        memcpy(out, text, length);
}

/* Everything but the code itself. */
static void add_to_seal(hpct_auth_seal *seal, const uint8_t frame[HPCT_NET_FRAME_BYTES])
{
    hpct_auth_seal_add(seal, frame, AT_TAG);
    hpct_auth_seal_add(seal, frame + AT_NODE, HPCT_NET_FRAME_BYTES - AT_NODE);
}

bool hpct_net_frame_encode(uint8_t out[HPCT_NET_FRAME_BYTES], const hpct_net_frame *frame,
                           hpct_auth_seal *seal)
{
    memset(out, 0, HPCT_NET_FRAME_BYTES);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_VERSION] = VERSION;
    out[AT_TYPE] = (uint8_t) frame->type;
    out[AT_STATUS] = frame->status;
    hpct_put(out + AT_RANK, frame->rank, 4);
    memcpy(out + AT_NODE, frame->node, HPCT_NET_FRAME_NODE);
    memcpy(out + AT_TEXT, frame->text, HPCT_NET_FRAME_TEXT);
    add_to_seal(seal, out);
    return hpct_auth_seal_end(seal, out + AT_TAG);
}

bool hpct_net_frame_take_text(char *out, const uint8_t *in, size_t size)
{
    memcpy(out, in, size);
    if (memchr(out, '\0', size) == NULL)
        return false;
    for (char *c = out; *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    return true;
}

bool hpct_net_frame_decode(hpct_net_frame *out, const uint8_t in[HPCT_NET_FRAME_BYTES],
                           hpct_auth_seal *seal)
{
    add_to_seal(seal, in);
    if (!hpct_auth_seal_check(seal, in + AT_TAG) ||
        memcmp(in + AT_MAGIC, magic, sizeof magic) != 0 || in[AT_VERSION] != VERSION ||
        in[AT_ZERO] != 0)
        return false;
    if (in[AT_TYPE] < HPCT_NET_FRAME_HELLO || in[AT_TYPE] >= HPCT_NET_NUM_FRAMES)
        return false;
    out->type = (hpct_net_frame_type) in[AT_TYPE];
    out->status = in[AT_STATUS];
    if (out->type == HPCT_NET_FRAME_BEAT && out->status > HPCT_WAITS_FOR_RANKS)
        return false;
    out->rank = (uint32_t) hpct_get(in + AT_RANK, 4);
    return hpct_net_frame_take_text(out->node, in + AT_NODE, HPCT_NET_FRAME_NODE) &&
           hpct_net_frame_take_text(out->text, in + AT_TEXT, HPCT_NET_FRAME_TEXT);
}
