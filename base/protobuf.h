/* base/protobuf.h - writes Protocol Buffers messages (protobuf.dev, Encoding) into memory:
 * fields in ascending order, as its own libraries do. Independent of what the messages mean. */
#ifndef HPCT_BASE_PROTOBUF_H
#define HPCT_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing buffer, {0} at first; the owner frees `data`. Without memory nothing more is added. */
typedef struct hpct_protobuf {
    uint8_t *data;
    size_t size, room;
    bool failed;
} hpct_protobuf;

/* Little-endian bytes without a tag. */
void hpct_protobuf_put(hpct_protobuf *to, const void *bytes, size_t size);
void hpct_protobuf_put_u32(hpct_protobuf *to, uint32_t value);
void hpct_protobuf_put_u64(hpct_protobuf *to, uint64_t value);
void hpct_protobuf_put_double(hpct_protobuf *to, double value);
void hpct_protobuf_put_varint(hpct_protobuf *to, uint64_t value);

/* Fields. */
void hpct_protobuf_integer(hpct_protobuf *to, int field, int64_t value);
void hpct_protobuf_float(hpct_protobuf *to, int field, float value);
void hpct_protobuf_double(hpct_protobuf *to, int field, double value);
void hpct_protobuf_text(hpct_protobuf *to, int field, const char *text);

/* A field that is a message, or bytes: what is written between the two calls. They nest. */
size_t hpct_protobuf_begin(hpct_protobuf *to, int field);
void hpct_protobuf_end(hpct_protobuf *to, size_t begin);

#endif
