/* Kernels with and without races, for test_races. */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "nn/backend/cuda/launch.cuh"
#include "tests/gpu_without/kernels/races_kernels.h"

namespace
{

constexpr int THREADS = 64, BLOCKS = 3, LANES = 32;

struct alignas(16) wide {
    float at[4];
};

alignas(16) HPCT_CUDA_OF_DEVICE float results[THREADS];
HPCT_CUDA_OF_DEVICE float partial[BLOCKS];
HPCT_CUDA_OF_DEVICE unsigned done;

/* Each thread reads what the next one wrote. */
__global__ void neighbours(race_case of)
{
    __shared__ float shared[THREADS];
    const int own = (int) threadIdx.x;
    shared[own] = 1;
    if (of == RACE_NONE || of == RACE_OVERWRITE)
        __syncthreads();
    if (of == RACE_WARP_NONE || of == RACE_BETWEEN_WARPS)
        __syncwarp();
    if (of == RACE_SHUFFLE)
        __shfl_sync(0xffffffffu, own, 0);
    const int lanes = of == RACE_WARP_NONE || of == RACE_SHUFFLE ? LANES : THREADS,
              other = own / lanes * lanes + (own + 1) % lanes;
    const float theirs = shared[other];
    if (of == RACE_OVERWRITE)
        shared[own] = theirs;
    results[own] = theirs;
}

/* Blocks add to one number, or read each other's. */
__global__ void blocks(race_case of)
{
    __shared__ unsigned before;
    if (of == RACE_BLOCKS_WRITE) {
        results[threadIdx.x] = (float) blockIdx.x;
        return;
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = 1;
        if (of != RACE_TICKET_EARLY)
            __threadfence();
        before = atomicAdd(&done, 1u);
        if (of != RACE_TICKET_LATE)
            __threadfence();
    }
    if (of != RACE_TICKET_ALONE)
        __syncthreads();
    else if (threadIdx.x != 0)
        return;
    if (of == RACE_BLOCKS_READ) { /* in any order */
        results[threadIdx.x] = partial[(blockIdx.x + 1) % BLOCKS] + 1;
    } else if (before + 1 == BLOCKS) {
        float sum = 0;
        for (float x : partial)
            sum += x;
        results[threadIdx.x] = sum;
    }
}

__global__ void unaligned(int from)
{
    const wide four = *reinterpret_cast<const wide *>(&results[from]);
    results[0] = four.at[0] + four.at[1] + four.at[2] + four.at[3];
}

__global__ void behind(int at)
{
    __shared__ float shared[THREADS];
    shared[at] = 1;
    results[0] = shared[at];
}

} // namespace

void races_run(race_case of)
{
    done = 0;
    switch (of) {
    case RACE_NONE:
    case RACE_NO_BARRIER:
    case RACE_OVERWRITE:
    case RACE_WARP_NONE:
    case RACE_SHUFFLE:
    case RACE_BETWEEN_WARPS:
        for (int launch = 0; launch < 2; launch++) /* one after the other */
            HPCT_CUDA_LAUNCH_ON(nullptr, neighbours, 1, THREADS, of);
        return;
    case RACE_UNALIGNED:
        HPCT_CUDA_LAUNCH_ON(nullptr, unaligned, 1, 1, 1);
        return;
    case RACE_BEHIND:
        HPCT_CUDA_LAUNCH_ON(nullptr, behind, 1, 1, THREADS);
        return;
    default:
        HPCT_CUDA_LAUNCH_ON(nullptr, blocks, BLOCKS, THREADS, of);
    }
}
