/* Philox4x32-10 and uniform floats from it. */
#include "nn/graph/rng.h"

#include <string.h>

void hpct_graph_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
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
