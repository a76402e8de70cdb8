/* nn/backend/cuda/random.cuh - nn/graph/rng.h on the device: the same words for the same draw. */
#ifndef HPCT_NN_BACKEND_CUDA_RANDOM_CUH
#define HPCT_NN_BACKEND_CUDA_RANDOM_CUH

#include "nn/backend/cuda/kernel.cuh"

struct words {
    uint32_t at[4];
};

/* hpct_graph_philox: Philox4x32-10. */
__device__ inline words philox(const words &counter, uint64_t key)
{
    uint32_t c0 = counter.at[0], c1 = counter.at[1], c2 = counter.at[2], c3 = counter.at[3];
    uint32_t k0 = (uint32_t) key, k1 = (uint32_t) (key >> 32);
#pragma unroll
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
    return {{c0, c1, c2, c3}};
}

__device__ inline hpct_cuda_drawing current(hpct_cuda_drawing d)
{
    if (d.now != nullptr) {
        d.seed = d.now->seed;
        d.step = d.now->step;
        d.first_sample = d.now->first_sample;
    }
    return d;
}

/* hpct_graph_draw_words. */
__device__ inline words draw_words(const hpct_cuda_drawing &d, uint32_t sample, uint32_t block)
{
    return philox({{block, sample, d.step, d.tag}}, d.seed);
}

#endif
