/* nn/graph/rng.h - counter-based random numbers: functions of (seed, stream, index), independent of
 * thread, order and number of threads. */
#ifndef HPCT_NN_GRAPH_RNG_H
#define HPCT_NN_GRAPH_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011). */
void hpct_graph_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

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
