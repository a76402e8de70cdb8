/* Headers, big-endian: magic, version, type, from, task, signal, 0, index, slice, step, version,
 * bytes, plan, sums, rate, parts, tag of the seal over everything else, node, text. */
#include "agent/ps/message.h"

#include "agent/ps/schedule.h"
#include "agent/rank/stop.h"
#include "base/bytes.h"

#include <math.h>
#include <string.h>

enum {
    AT_MAGIC = 0,
    AT_PROTOCOL = 4,
    AT_TYPE = 5,
    AT_FROM = 6,
    AT_TASK = 7,
    AT_SIGNAL = 8,
    AT_ZERO = 9, /* to 12 */
    AT_INDEX = 12,
    AT_SLICE = 16,
    AT_STEP = 20,
    AT_VERSION = 28,
    AT_BYTES = 36,
    AT_PLAN = 44,
    AT_SUMS = 52,
    AT_RATE = 76,
    AT_PARTS = 84,
    AT_TAG = AT_PARTS + 4 * HPCT_PS_PARTS,
    AT_NODE = AT_TAG + HPCT_AUTH_SEAL_TAG,
    AT_TEXT = AT_NODE + HPCT_NET_FRAME_NODE,
};
_Static_assert(AT_TEXT + HPCT_PS_TEXT <= HPCT_PS_MESSAGE_BYTES, "a message has room for its parts");

static const uint8_t magic[4] = {'H', 'P', 'C', 'P'};
#define PROTOCOL 3
#define MOST ((uint64_t) 1 << 62) /* limit of counters, so that they cannot overflow */
#define MOST_PART 1e12f           /* ms: that is 30 years */

static void put_double(uint8_t *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hpct_put(out, bits, 8);
}

/* A loss may be infinite or NaN: the training diverges, the peer is not at fault. */
static double get_double(const uint8_t *in)
{
    uint64_t bits = hpct_get(in, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void put_float(uint8_t *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    hpct_put(out, bits, 4);
}

static float get_float(const uint8_t *in)
{
    uint32_t bits = (uint32_t) hpct_get(in, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Seals everything except the tag. */
static void add_to_seal(hpct_auth_seal *seal, const uint8_t message[HPCT_PS_MESSAGE_BYTES])
{
    hpct_auth_seal_add(seal, message, AT_TAG);
    hpct_auth_seal_add(seal, message + AT_NODE, HPCT_PS_MESSAGE_BYTES - AT_NODE);
}

bool hpct_ps_message_encode(uint8_t out[HPCT_PS_MESSAGE_BYTES], const hpct_ps_message *message,
                            hpct_auth_seal *seal)
{
    memset(out, 0, HPCT_PS_MESSAGE_BYTES);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_PROTOCOL] = PROTOCOL;
    out[AT_TYPE] = (uint8_t) message->type;
    out[AT_FROM] = (uint8_t) message->from;
    out[AT_TASK] = message->task;
    out[AT_SIGNAL] = message->signal;
    hpct_put(out + AT_INDEX, message->index, 4);
    hpct_put(out + AT_SLICE, message->slice, 4);
    hpct_put(out + AT_STEP, message->step, 8);
    hpct_put(out + AT_VERSION, message->version, 8);
    hpct_put(out + AT_BYTES, message->bytes, 8);
    hpct_put(out + AT_PLAN, message->plan, 8);
    put_double(out + AT_SUMS, message->loss);
    put_double(out + AT_SUMS + 8, message->correct);
    put_double(out + AT_SUMS + 16, message->in_top_k);
    put_double(out + AT_RATE, message->rate);
    for (int i = 0; i < HPCT_PS_PARTS; i++)
        put_float(out + AT_PARTS + 4 * i, message->parts[i]);
    memcpy(out + AT_NODE, message->node, HPCT_NET_FRAME_NODE);
    memcpy(out + AT_TEXT, message->text, HPCT_PS_TEXT);
    add_to_seal(seal, out);
    return hpct_auth_seal_end(seal, out + AT_TAG);
}

/* A learning rate, where one belongs; and the parts of a step. */
static bool has_fine_numbers(const hpct_ps_message *m)
{
    bool rated = m->type == HPCT_PS_ITEM || m->type == HPCT_PS_PUSH;
    for (int i = 0; i < HPCT_PS_PARTS; i++) {
        if (!(m->parts[i] >= 0 && m->parts[i] <= (m->type == HPCT_PS_DONE ? MOST_PART : 0)))
            return false;
    }
    return m->rate >= 0 && (rated ? isfinite(m->rate) : m->rate == 0);
}

bool hpct_ps_message_decode(hpct_ps_message *out, const uint8_t in[HPCT_PS_MESSAGE_BYTES],
                            hpct_auth_seal *seal)
{
    add_to_seal(seal, in);
    if (!hpct_auth_seal_check(seal, in + AT_TAG) ||
        memcmp(in + AT_MAGIC, magic, sizeof magic) != 0 || in[AT_PROTOCOL] != PROTOCOL ||
        hpct_get(in + AT_ZERO, 3) != 0)
        return false;
    if (in[AT_TYPE] < HPCT_PS_HELLO || in[AT_TYPE] >= HPCT_PS_MESSAGE_TYPES ||
        in[AT_FROM] >= HPCT_PS_FROMS || in[AT_TASK] > HPCT_PS_END ||
        in[AT_SIGNAL] > HPCT_RANK_STOP_DEADLINE)
        return false;
    *out = (hpct_ps_message){
        .type = (hpct_ps_message_type) in[AT_TYPE],
        .from = (hpct_ps_from) in[AT_FROM],
        .task = in[AT_TASK],
        .signal = in[AT_SIGNAL],
        .index = (uint32_t) hpct_get(in + AT_INDEX, 4),
        .slice = (uint32_t) hpct_get(in + AT_SLICE, 4),
        .step = hpct_get(in + AT_STEP, 8),
        .version = hpct_get(in + AT_VERSION, 8),
        .bytes = hpct_get(in + AT_BYTES, 8),
        .plan = hpct_get(in + AT_PLAN, 8),
        .loss = get_double(in + AT_SUMS),
        .correct = get_double(in + AT_SUMS + 8),
        .in_top_k = get_double(in + AT_SUMS + 16),
        .rate = get_double(in + AT_RATE),
    };
    for (int i = 0; i < HPCT_PS_PARTS; i++)
        out->parts[i] = get_float(in + AT_PARTS + 4 * i);
    bool floats = out->type == HPCT_PS_PUSH || out->type == HPCT_PS_PARAMS;
    if (out->step >= MOST || out->version >= MOST || out->bytes >= MOST ||
        (out->bytes != 0 && !floats && out->type != HPCT_PS_WELCOME) || !has_fine_numbers(out))
        return false;
    return hpct_net_frame_take_text(out->node, in + AT_NODE, HPCT_NET_FRAME_NODE) &&
           hpct_net_frame_take_text(out->text, in + AT_TEXT, HPCT_PS_TEXT);
}
