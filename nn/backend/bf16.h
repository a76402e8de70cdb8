/* nn/backend/bf16.h - bfloat16: the upper half of an fp32 number, rounded to nearest even. */
#ifndef HPCT_NN_BACKEND_BF16_H
#define HPCT_NN_BACKEND_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t hpct_backend_bf16;

/* Overflow rounds to infinity; NaN stays NaN. */
static inline hpct_backend_bf16 hpct_backend_bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (hpct_backend_bf16) (bits >> 16 | 0x40);
    return (hpct_backend_bf16) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float hpct_backend_bf16_value(hpct_backend_bf16 x)
{
    uint32_t bits = (uint32_t) x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
