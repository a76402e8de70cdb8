/* Penalties of regularizers (nn/backend/backend.h): their gradients, and their sums in two stages,
 * in an order that depends on the sizes only. */
#include "nn/backend/cuda/kernel.cuh"

constexpr int PENALTY_UNIT = HPCT_BACKEND_ARENA_ALIGN; /* floats; parameters are multiples */
constexpr int PENALTY_VALUES = 4;                      /* floats per thread and access */
constexpr int PENALTY_RANGES = 128;                    /* per launch */
constexpr int PENALTY_CHUNK = 4096;  /* minimum floats of a parameter per block and iteration */
constexpr int PENALTY_CHUNKS = 4096; /* maximum, plus one per parameter */

/* Parameters in units, divided into chunks. */
struct penalty_table {
    int num;
    uint32_t chunk;                           /* units per chunk; the last has fewer */
    uint32_t first_chunk[PENALTY_RANGES + 1]; /* of each; then the number of chunks */
    uint32_t offset[PENALTY_RANGES], count[PENALTY_RANGES];
    float l1[PENALTY_RANGES], l2[PENALTY_RANGES];
};

static_assert(PENALTY_CHUNK % PENALTY_UNIT == 0, "a chunk is whole units");
static_assert(sizeof(penalty_table) <= 4000, "a kernel takes 4 KiB of arguments");

/* Each parameter may have one chunk that is not full. */
HPCT_CUDA_OF_DEVICE double penalty_of_chunk[PENALTY_CHUNKS + PENALTY_RANGES];

/* A chunk's floats, and factors. */
struct penalty_span {
    size_t begin, end;
    float l1, l2;
};

__device__ inline penalty_span penalty_span_of(const penalty_table &t, uint32_t chunk)
{
    const int i = item_of(t.first_chunk, t.num, chunk);
    const uint32_t first = (chunk - t.first_chunk[i]) * t.chunk, left = t.count[i] - first;
    const size_t begin = ((size_t) t.offset[i] + first) * PENALTY_UNIT;
    return {begin, begin + (size_t) (left < t.chunk ? left : t.chunk) * PENALTY_UNIT, t.l1[i],
            t.l2[i]};
}

__global__ void __launch_bounds__(THREADS)
    penalty_gradients(const __grid_constant__ penalty_table t, float factor,
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

__global__ void __launch_bounds__(THREADS)
    penalty_sums(const __grid_constant__ penalty_table t, const float *param)
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
        const double all = block_sum((double) s.l1 * size + (double) s.l2 * squares);
        if (threadIdx.x == 0)
            penalty_of_chunk[chunk] = all;
    }
}

/* One block adds the chunks in order; first: overwrites. */
__global__ void __launch_bounds__(THREADS) penalty_total(uint32_t chunks, bool first, float *to)
{
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < chunks; c += THREADS)
        sum += penalty_of_chunk[c];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *to = (float) ((first ? 0 : (double) *to) + sum);
}

/* ---- launchers ---- */

/* The next parameters from *at on, those that are split or the others, as many as there is room
 * for; chunks are enlarged if there would be too many. */
static penalty_table table_of(const hpct_backend_penalty_call *call, bool split, int *at)
{
    penalty_table t = {};
    uint64_t units = 0;
    t.chunk = PENALTY_CHUNK / PENALTY_UNIT;
    for (; *at < call->num && t.num < PENALTY_RANGES; ++*at) {
        const hpct_backend_penalty *p = &call->penalties[*at];
        if (p->split != split)
            continue;
        t.offset[t.num] = (uint32_t) (p->offset / PENALTY_UNIT);
        t.count[t.num] = (uint32_t) (p->count / PENALTY_UNIT);
        t.l1[t.num] = p->l1;
        t.l2[t.num] = p->l2;
        units += t.count[t.num++];
    }
    uint64_t even = (units + PENALTY_CHUNKS - 1) / PENALTY_CHUNKS;
    if (even > t.chunk)
        t.chunk = (uint32_t) even;
    for (int i = 0; i < t.num; i++)
        t.first_chunk[i + 1] = t.first_chunk[i] + (t.count[i] + t.chunk - 1) / t.chunk;
    return t;
}

/* sum: NULL, or where the penalties go. */
static cudaError_t launch_table(const hpct_backend_penalty_call *call, const penalty_table &t,
                                bool first, float *sum)
{
    const uint32_t chunks = t.first_chunk[t.num];
    cudaError_t error = cudaSuccess;
    if (call->grad != NULL && t.num > 0)
        error = HPCT_CUDA_LAUNCH(penalty_gradients, blocks_for(chunks, 1), THREADS, t, call->factor,
                                 call->scaling, call->param, call->grad);
    if (error == cudaSuccess && sum != NULL && chunks > 0)
        error = HPCT_CUDA_LAUNCH(penalty_sums, blocks_for(chunks, 1), THREADS, t, call->param);
    if (error == cudaSuccess && sum != NULL && (t.num > 0 || first))
        error = HPCT_CUDA_LAUNCH(penalty_total, 1, THREADS, chunks, first, sum);
    return error;
}

static hpct_status penalize(const hpct_backend_penalty_call *call, bool split, float *sum)
{
    bool first = true;
    for (int at = 0; at < call->num || (first && sum != NULL); first = false)
        HPCT_TRY(hpct_cuda_check(launch_table(call, table_of(call, split, &at), first, sum),
                                 "penalties"));
    return HPCT_OK;
}

hpct_status hpct_cuda_penalize(const hpct_backend_penalty_call *call)
{
    HPCT_TRY(penalize(call, true, call->sums));
    return penalize(call, false, call->sums != NULL ? call->sums + 1 : NULL);
}
