/* Penalties of regularizers (nn/backend/backend.h): their gradients, and their sums in two stages,
 * in an order that depends on the sizes only. */
#include "nn/backend/cuda/kernel.cuh"

constexpr int PENALTY_UNIT = 16;  /* floats; parameters are multiples */
constexpr int PENALTY_VALUES = 4; /* floats per thread and access */

static_assert(HPCT_CUDA_PENALTY_CHUNK % PENALTY_UNIT == 0, "a chunk is whole units");
static_assert(sizeof(hpct_cuda_penalty_table) <= 4000, "a kernel takes 4 KiB of arguments");

/* Each parameter may have one chunk that is not full. */
HPCT_CUDA_OF_DEVICE double penalty_of_chunk[HPCT_CUDA_PENALTY_CHUNKS + HPCT_CUDA_PENALTY_RANGES];

/* A chunk's floats, and factors. */
struct penalty_span {
    size_t begin, end;
    float l1, l2;
};

__device__ inline penalty_span penalty_span_of(const hpct_cuda_penalty_table &t, uint32_t chunk)
{
    const int i = item_of(t.first_chunk, t.num, chunk);
    const uint32_t first = (chunk - t.first_chunk[i]) * t.chunk, left = t.count[i] - first;
    const size_t begin = ((size_t) t.offset[i] + first) * PENALTY_UNIT;
    return {begin, begin + (size_t) (left < t.chunk ? left : t.chunk) * PENALTY_UNIT, t.l1[i],
            t.l2[i]};
}

__global__ void __launch_bounds__(THREADS)
    penalty_gradients(const __grid_constant__ hpct_cuda_penalty_table t, float factor,
                      const hpct_graph_loss_scaling *scaling, const float *param, float *grad)
{
    if (scaling != nullptr)
        factor *= scaling->scale;
    for (uint32_t chunk = blockIdx.x; chunk < t.first_chunk[t.num]; chunk += gridDim.x) {
        const penalty_span s = penalty_span_of(t, chunk);
        for (size_t i = s.begin + PENALTY_VALUES * threadIdx.x; i < s.end;
             i += PENALTY_VALUES * THREADS) {
            float w[PENALTY_VALUES], g[PENALTY_VALUES];
            load(param + i, w);
            load(grad + i, g);
#pragma unroll
            for (int k = 0; k < PENALTY_VALUES; k++)
                g[k] += factor * (2 * s.l2 * w[k] + (w[k] > 0 ? s.l1 : w[k] < 0 ? -s.l1 : 0.0f));
            store(g, grad + i);
        }
    }
}

/* Sum over the block, stored by its first thread. */
__device__ inline void leave_penalty(double own, double *to)
{
    __shared__ double of_warp[THREADS / WARP];
    own = warp_sum(own);
    __syncthreads(); /* earlier sums have been read */
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = own;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0;
    for (int i = 0; i < THREADS / WARP; i++)
        sum += of_warp[i];
    *to = sum;
}

__global__ void __launch_bounds__(THREADS)
    penalty_sums(const __grid_constant__ hpct_cuda_penalty_table t, const float *param)
{
    for (uint32_t chunk = blockIdx.x; chunk < t.first_chunk[t.num]; chunk += gridDim.x) {
        const penalty_span s = penalty_span_of(t, chunk);
        double size = 0, squares = 0;
        for (size_t i = s.begin + PENALTY_VALUES * threadIdx.x; i < s.end;
             i += PENALTY_VALUES * THREADS) {
            float w[PENALTY_VALUES];
            load(param + i, w);
#pragma unroll
            for (int k = 0; k < PENALTY_VALUES; k++) {
                size += fabs((double) w[k]);
                squares += (double) w[k] * (double) w[k];
            }
        }
        leave_penalty((double) s.l1 * size + (double) s.l2 * squares, &penalty_of_chunk[chunk]);
    }
}

/* One block adds the chunks in order; first: overwrites. */
__global__ void __launch_bounds__(THREADS) penalty_total(uint32_t chunks, bool first, float *to)
{
    __shared__ double total;
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < chunks; c += THREADS)
        sum += penalty_of_chunk[c];
    leave_penalty(sum, &total);
    if (threadIdx.x == 0)
        *to = (float) ((first ? 0 : (double) *to) + total);
}

/* ---- launchers ---- */

static unsigned penalty_blocks(hpct_cuda_queue queue, const hpct_cuda_penalty_table *t)
{
    return blocks_for(queue, t->first_chunk[t->num], 1);
}

cudaError_t hpct_cuda_launch_penalty_gradients(hpct_cuda_queue queue,
                                               const hpct_cuda_penalty_table *table, float factor,
                                               const hpct_graph_loss_scaling *scaling,
                                               const float *param, float *grad)
{
    HPCT_CUDA_LAUNCH(penalty_gradients, penalty_blocks(queue, table), THREADS, queue, *table,
                     factor, scaling, param, grad);
    return cudaGetLastError();
}

cudaError_t hpct_cuda_launch_penalty_sums(hpct_cuda_queue queue,
                                          const hpct_cuda_penalty_table *table, const float *param,
                                          bool first, float *sum)
{
    const uint32_t chunks = table->first_chunk[table->num];
    if (chunks > 0)
        HPCT_CUDA_LAUNCH(penalty_sums, penalty_blocks(queue, table), THREADS, queue, *table, param);
    HPCT_CUDA_LAUNCH(penalty_total, 1, THREADS, queue, chunks, first, sum);
    return cudaGetLastError();
}
