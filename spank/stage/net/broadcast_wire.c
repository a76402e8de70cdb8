/* A header is 32 bytes, big-endian: magic, version, type, 0, 0, size, checksum of the header,
 * sequence, hash of the data. */
#include "spank/stage/net/broadcast_wire.h"

#include <string.h>

#include "spank/stage/tree/hash.h"

enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_TYPE = 5,
    AT_SIZE = 8,
    AT_CHECK = 12,
    AT_SEQUENCE = 16,
    AT_HASH = 24
};

static const uint8_t magic[4] = {'H', 'P', 'C', 'B'};
#define VERSION 1

void hpct_wire_put32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t) (value >> (24 - 8 * i));
}

void hpct_wire_put64(uint8_t *out, uint64_t value)
{
    hpct_wire_put32(out, (uint32_t) (value >> 32));
    hpct_wire_put32(out + 4, (uint32_t) value);
}

uint32_t hpct_wire_get32(const uint8_t *in)
{
    return (uint32_t) in[0] << 24 | (uint32_t) in[1] << 16 | (uint32_t) in[2] << 8 | in[3];
}

uint64_t hpct_wire_get64(const uint8_t *in)
{
    return (uint64_t) hpct_wire_get32(in) << 32 | hpct_wire_get32(in + 4);
}

/* Checksum of the header without the checksum field. */
static uint32_t check_of(const uint8_t *header)
{
    uint8_t rest[HPCT_WIRE_HEADER];
    memcpy(rest, header, sizeof rest);
    memset(rest + AT_CHECK, 0, 4);
    return (uint32_t) hpct_hash(rest, sizeof rest);
}

static uint32_t most(hpct_wire_type type)
{
    switch (type) {
    case HPCT_WIRE_CHALLENGE:
    case HPCT_WIRE_HELLO:
    case HPCT_WIRE_WELCOME:
        return HPCT_GREETING_BYTES;
    case HPCT_WIRE_BLOCK:
        return HPCT_BLOCK_BYTES;
    case HPCT_WIRE_LETTER:
    case HPCT_WIRE_GATHER:
        return HPCT_LETTER_BYTES;
    case HPCT_WIRE_FAIL:
        return HPCT_WIRE_FAILURE_MAX;
    case HPCT_WIRE_BEAT:
    case HPCT_WIRE_BYE:
        return 0;
    }
    return 0;
}

void hpct_wire_encode_again(uint8_t out[HPCT_WIRE_HEADER], const hpct_wire_header *header)
{
    memset(out, 0, HPCT_WIRE_HEADER);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_VERSION] = VERSION;
    out[AT_TYPE] = (uint8_t) header->type;
    hpct_wire_put32(out + AT_SIZE, header->size);
    hpct_wire_put64(out + AT_SEQUENCE, header->sequence);
    hpct_wire_put64(out + AT_HASH, header->hash);
    hpct_wire_put32(out + AT_CHECK, check_of(out));
}

void hpct_wire_encode(uint8_t out[HPCT_WIRE_HEADER], hpct_wire_header *header, const void *data)
{
    header->hash = hpct_hash(data, header->size);
    hpct_wire_encode_again(out, header);
}

bool hpct_wire_decode(hpct_wire_header *out, const uint8_t in[HPCT_WIRE_HEADER])
{
    if (memcmp(in + AT_MAGIC, magic, sizeof magic) != 0 || in[AT_VERSION] != VERSION ||
        in[AT_TYPE] < HPCT_WIRE_CHALLENGE || in[AT_TYPE] > HPCT_WIRE_BYE || in[AT_TYPE + 1] != 0 ||
        in[AT_TYPE + 2] != 0 || hpct_wire_get32(in + AT_CHECK) != check_of(in))
        return false;
    out->type = (hpct_wire_type) in[AT_TYPE];
    out->size = hpct_wire_get32(in + AT_SIZE);
    out->sequence = hpct_wire_get64(in + AT_SEQUENCE);
    out->hash = hpct_wire_get64(in + AT_HASH);
    return out->size <= most(out->type);
}

bool hpct_wire_check(const hpct_wire_header *header, const void *data)
{
    return hpct_hash(data, header->size) == header->hash;
}

size_t hpct_wire_put_failure(uint8_t out[HPCT_WIRE_FAILURE_MAX], const hpct_wire_failure *failure)
{
    size_t length = strnlen(failure->text, sizeof failure->text - 1);
    hpct_wire_put32(out, failure->node);
    out[4] = failure->status;
    memcpy(out + 5, failure->text, length);
    return 5 + length;
}

bool hpct_wire_get_failure(hpct_wire_failure *out, const uint8_t *in, size_t size)
{
    size_t length = size - 5;
    if (size < 5 || length >= sizeof out->text)
        return false;
    out->node = hpct_wire_get32(in);
    out->status = in[4];
    memcpy(out->text, in + 5, length);
    out->text[length] = '\0';
    for (size_t i = 0; i < length; i++) { /* the text is printed on a terminal */
        if ((unsigned char) out->text[i] < 0x20 || out->text[i] == 0x7f)
            out->text[i] = '?';
    }
    return out->status != 0;
}
