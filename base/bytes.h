/* base/bytes.h - big-endian integers in messages. */
#ifndef HPCT_BASE_BYTES_H
#define HPCT_BASE_BYTES_H

#include <stdint.h>

static inline void hpct_put(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        out[i] = (uint8_t) value;
}

static inline uint64_t hpct_get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | in[i];
    return value;
}

#endif
