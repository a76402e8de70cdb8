/* nn/graph/rng.h - counter-based random numbers: functions of (seed, stream, index), independent of
 * thread, order and number of threads. */
#ifndef HPCT_NN_GRAPH_RNG_H
#define HPCT_NN_GRAPH_RNG_H

#include "base/host_and_device.h"

#include <stddef.h>
#include <stdint.h>

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011). */
HPCT_HOST_AND_DEVICE void hpct_graph_philox(const uint32_t counter[4], const uint32_t key[2],
                                            uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
        uint32_t n0 = (uint32_t) (p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t) (p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t) p1;
        c3 = (uint32_t) p0;
        c0 = n0;
        c2 = n2;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Uniform in [0, 1), a multiple of 2^-24: number `index` of the stream. */
float hpct_graph_uniform(uint64_t seed, uint32_t stream, uint64_t index);

/* The first `count` of them, four at a time. */
void hpct_graph_uniforms(uint64_t seed, uint32_t stream, size_t count, float *out);

/* State of random layers in one step. Independent of hpct_graph_uniform's numbers. */
typedef struct hpct_graph_draw {
    uint64_t seed;
    uint32_t stream; /* below 2^31: distinct for each layer */
    uint32_t step;
} hpct_graph_draw;

/* The fourth word of Philox's counter; the others are block, sample and step. */
static inline uint32_t hpct_graph_draw_tag(const hpct_graph_draw *draw)
{
    return draw->stream | UINT32_C(0x80000000);
}

/* Four of the random words of one sample of the global batch. */
void hpct_graph_draw_words(const hpct_graph_draw *draw, uint32_t sample, uint32_t block,
                           uint32_t out[4]);

#endif
