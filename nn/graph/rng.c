/* Uniform floats, and words of random layers, from Philox4x32-10. */
#include "nn/graph/rng.h"

#include <string.h>

static void uniform_block(uint64_t seed, uint32_t stream, uint64_t block, float out[4])
{
    uint32_t counter[4] = {(uint32_t) block, (uint32_t) (block >> 32), stream, 0}, bits[4];
    uint32_t key[2] = {(uint32_t) seed, (uint32_t) (seed >> 32)};
    hpct_graph_philox(counter, key, bits);
    for (int i = 0; i < 4; i++)
        out[i] = (float) (bits[i] >> 8) * 0x1p-24f;
}

float hpct_graph_uniform(uint64_t seed, uint32_t stream, uint64_t index)
{
    float out[4];
    uniform_block(seed, stream, index / 4, out);
    return out[index % 4];
}

void hpct_graph_uniforms(uint64_t seed, uint32_t stream, size_t count, float *out)
{
    float last[4];
    size_t whole = count / 4;
    for (size_t block = 0; block < whole; block++)
        uniform_block(seed, stream, block, out + 4 * block);
    uniform_block(seed, stream, whole, last);
    memcpy(out + 4 * whole, last, count % 4 * sizeof *out);
}

void hpct_graph_draw_words(const hpct_graph_draw *draw, uint32_t sample, uint32_t block,
                           uint32_t out[4])
{
    uint32_t counter[4] = {block, sample, draw->step, hpct_graph_draw_tag(draw)};
    uint32_t key[2] = {(uint32_t) draw->seed, (uint32_t) (draw->seed >> 32)};
    hpct_graph_philox(counter, key, out);
}
