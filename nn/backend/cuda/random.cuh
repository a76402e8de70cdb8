/* nn/backend/cuda/random.cuh - nn/graph/rng.h on the device: the same words for the same draw. */
#ifndef HPCT_NN_BACKEND_CUDA_RANDOM_CUH
#define HPCT_NN_BACKEND_CUDA_RANDOM_CUH

#include "nn/backend/cuda/kernel.cuh"

struct words {
    uint32_t at[4];
};

__device__ inline words philox(const words &counter, uint64_t key)
{
    const uint32_t halves[2] = {(uint32_t) key, (uint32_t) (key >> 32)};
    words drawn;
    hpct_graph_philox(counter.at, halves, drawn.at);
    return drawn;
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
