/* Conversion to 16 bits, and sums. Long arrays are processed by all threads, in blocks. */
#include "agent/comm/wire.h"

#include "base/fp16.h"

#include <stdbool.h>
#include <string.h>

#define BLOCK ((size_t) 4096)   /* floats that fit the L1 cache */
#define LONG ((size_t) 1 << 16) /* shorter arrays do not pay for threads */

typedef struct loops {
    bool (*supported)(void);
    void (*encode[3])(size_t count, const float *src, float factor, uint16_t *dst);
    void (*decode[3])(size_t count, const uint16_t *src, float factor, float *dst);
    void (*add[3])(size_t count, const uint16_t *src, float factor, float *dst);
    uint32_t (*largest)(size_t count, const float *src);
    void (*sum)(size_t count, const float *src, float *dst);
} loops;

#define HPCT_BODY "agent/comm/wire_body.h"
#include "base/variants.h"

static const loops *const variants[] = {HPCT_VARIANTS(all)};

static const loops *best(void)
{
    static const loops *chosen; /* every thread would store the same value */
    const loops *found = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    for (int i = 0; found == NULL; i++)
        found = variants[i]->supported() ? variants[i] : NULL;
    __atomic_store_n(&chosen, found, __ATOMIC_RELAXED);
    return found;
}

static size_t at_most(size_t count, size_t most)
{
    return count < most ? count : most;
}

/* 2^(15 - e) if the largest value is in 2^(e-1) … 2^e, limited so that it and its inverse are
 * normal fp32 numbers. */
static float fp16_factor(const loops *do_, size_t count, const float *src)
{
    uint32_t largest = 0;
#pragma omp parallel for reduction(max : largest) if (count >= LONG)
    for (size_t i = 0; i < count; i += BLOCK) {
        uint32_t here = do_->largest(at_most(count - i, BLOCK), src + i);
        largest = here > largest ? here : largest;
    }
    if (largest == 0 || largest >= 0x7f800000)
        return 1.0f;
    int exponent = 127 + 14 + 127 - (int) (largest >> 23); /* biased exponent of the factor */
    return hpct_float_of_bits((uint32_t) (exponent < 253 ? exponent : 253) << 23);
}

void hpct_comm_wire_encode(hpct_wire wire, size_t count, const float *src, float *message)
{
    const loops *do_ = best();
    float factor = wire == HPCT_WIRE_FP16 ? fp16_factor(do_, count, src) : 1.0f;
    uint16_t *halves = (uint16_t *) (void *) (message + 1);
    message[0] = 1.0f / factor;
#pragma omp parallel for if (count >= LONG)
    for (size_t i = 0; i < count; i += BLOCK)
        do_->encode[wire](at_most(count - i, BLOCK), src + i, factor, halves + i);
}

void hpct_comm_wire_decode(hpct_wire wire, size_t count, const float *message, float *dst)
{
    const loops *do_ = best();
    const uint16_t *halves = (const uint16_t *) (const void *) (message + 1);
#pragma omp parallel for if (count >= LONG)
    for (size_t i = 0; i < count; i += BLOCK)
        do_->decode[wire](at_most(count - i, BLOCK), halves + i, message[0], dst + i);
}

void hpct_comm_wire_add(hpct_wire wire, size_t count, const float *message, float *dst)
{
    const loops *do_ = best();
    const uint16_t *halves = (const uint16_t *) (const void *) (message + 1);
#pragma omp parallel for if (count >= LONG)
    for (size_t i = 0; i < count; i += BLOCK)
        do_->add[wire](at_most(count - i, BLOCK), halves + i, message[0], dst + i);
}

void hpct_comm_wire_sum(size_t count, const float *const *terms, int num, float *dst)
{
    const loops *do_ = best();
#pragma omp parallel for if (count >= LONG)
    for (size_t i = 0; i < count; i += BLOCK) {
        float block[BLOCK];
        size_t here = at_most(count - i, BLOCK);
        memcpy(block, terms[0] + i, here * sizeof *block);
        for (int term = 1; term < num; term++)
            do_->sum(here, terms[term] + i, block);
        memcpy(dst + i, block, here * sizeof *block);
    }
}
