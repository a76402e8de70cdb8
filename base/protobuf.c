/* Protocol Buffers' wire format. */
#include "base/protobuf.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };
#define VARINT_MAX 10

static bool make_room(hpct_protobuf *to, size_t size)
{
    to->failed |= hpct_alloc_room(&to->data, &to->room, to->size + size, 1) != HPCT_OK;
    return !to->failed;
}

void hpct_protobuf_put(hpct_protobuf *to, const void *bytes, size_t size)
{
    if (size == 0 || !make_room(to, size))
        return;
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

static void put_bytes(hpct_protobuf *to, uint64_t value, size_t size)
{
    uint8_t bytes[sizeof value];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t) (value >> (8 * i));
    hpct_protobuf_put(to, bytes, size);
}

void hpct_protobuf_put_u32(hpct_protobuf *to, uint32_t value)
{
    put_bytes(to, value, sizeof value);
}

void hpct_protobuf_put_u64(hpct_protobuf *to, uint64_t value)
{
    put_bytes(to, value, sizeof value);
}

void hpct_protobuf_put_double(hpct_protobuf *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hpct_protobuf_put_u64(to, bits);
}

/* Seven bits a byte, the lowest first; the eighth says that more follow. */
static size_t varint(uint8_t bytes[VARINT_MAX], uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t) (value | 0x80);
    bytes[size++] = (uint8_t) value;
    return size;
}

void hpct_protobuf_put_varint(hpct_protobuf *to, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    hpct_protobuf_put(to, bytes, varint(bytes, value));
}

static void put_tag(hpct_protobuf *to, int field, int type)
{
    hpct_protobuf_put_varint(to, (uint64_t) field << 3 | (uint64_t) type);
}

/* ---- fields ---- */

void hpct_protobuf_integer(hpct_protobuf *to, int field, int64_t value)
{
    put_tag(to, field, VARINT);
    hpct_protobuf_put_varint(to, (uint64_t) value);
}

void hpct_protobuf_float(hpct_protobuf *to, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(to, field, FIXED32);
    hpct_protobuf_put_u32(to, bits);
}

void hpct_protobuf_double(hpct_protobuf *to, int field, double value)
{
    put_tag(to, field, FIXED64);
    hpct_protobuf_put_double(to, value);
}

void hpct_protobuf_text(hpct_protobuf *to, int field, const char *text)
{
    size_t size = strlen(text);
    put_tag(to, field, LENGTH);
    hpct_protobuf_put_varint(to, size);
    hpct_protobuf_put(to, text, size);
}

size_t hpct_protobuf_begin(hpct_protobuf *to, int field)
{
    put_tag(to, field, LENGTH);
    return to->size;
}

/* The length, known now, goes before what was written. */
void hpct_protobuf_end(hpct_protobuf *to, size_t begin)
{
    uint8_t bytes[VARINT_MAX];
    size_t length = to->size - begin, size = varint(bytes, length);
    if (!make_room(to, size))
        return;
    memmove(to->data + begin + size, to->data + begin, length);
    memcpy(to->data + begin, bytes, size);
    to->size += size;
}
