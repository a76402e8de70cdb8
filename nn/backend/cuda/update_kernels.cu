/* Optimizers over the arenas: one launch updates up to HPCT_CUDA_UPDATE_RANGES ranges. Norms are
 * computed in two stages, in an order that depends on the ranges' sizes only, and stay on the
 * device, where the update reads the factors derived from them. */
#include "nn/backend/cuda/kernel.cuh"

constexpr int UNIT = HPCT_BACKEND_ARENA_ALIGN; /* floats; ranges are multiples */
constexpr int VALUES = 4;                      /* floats per thread and access */

static_assert(HPCT_CUDA_UPDATE_CHUNK % UNIT == 0, "a chunk is whole units");
static_assert(sizeof(hpct_cuda_update_table) + sizeof(hpct_cuda_update_args) <= 4000,
              "a kernel takes 4 KiB of arguments");

/* ---- results kept for later launches of the step ---- */

HPCT_CUDA_OF_DEVICE double partial_sums[HPCT_CUDA_UPDATE_CHUNKS + HPCT_CUDA_UPDATE_RANGES]
                                       [2]; /* per chunk */
HPCT_CUDA_OF_DEVICE double range_sums[HPCT_CUDA_UPDATE_RANGES][2];
HPCT_CUDA_OF_DEVICE float shared_sums[HPCT_CUDA_UPDATE_RANGES]
                                     [2]; /* copy in fp32, for all-reduces */
HPCT_CUDA_OF_DEVICE double all_squares;
HPCT_CUDA_OF_DEVICE float range_scale[HPCT_CUDA_UPDATE_RANGES], range_rate[HPCT_CUDA_UPDATE_RANGES];

__device__ inline hpct_cuda_update_args current(hpct_cuda_update_args a)
{
    if (a.now != nullptr) {
        a.rate = a.now->rate;
        a.decay = a.now->decay;
        a.bias_1 = a.now->bias_1;
        a.bias_2 = a.now->bias_2;
    }
    if (a.scaling == nullptr)
        return a;
    a.grad_scale /= a.scaling->scale;
    if (a.scaling->left_out > 0) {
        const float bias_1 = hpct_graph_loss_scaling_bias(a.bias_1, a.scaling->undo_1),
                    bias_2 = hpct_graph_loss_scaling_bias(a.bias_2, a.scaling->undo_2);
        if (a.kind == HPCT_CUDA_UPDATE_ADAM) /* the rate already includes the uncorrected ones */
            a.rate *= sqrtf(bias_2 / a.bias_2) * (a.bias_1 / bias_1);
        a.bias_1 = bias_1;
        a.bias_2 = bias_2;
    }
    return a;
}

__device__ inline bool is_left_out(const hpct_cuda_update_args &a)
{
    return a.scaling != nullptr && a.scaling->infinite != 0;
}

/* ---- chunks ---- */

/* A chunk: its range, floats, and factors. */
struct span {
    int range;
    size_t begin, end;
    float scale, rate, decay;
};

/* Of the rate, for layers with a learning rate of their own. */
__device__ inline float factor_of(const hpct_cuda_update_table &t, int range)
{
    return t.factors[t.factor[range]];
}

__device__ inline span span_of(const hpct_cuda_update_table &t, const hpct_cuda_update_args &a,
                               uint32_t chunk)
{
    span s;
    s.range = item_of(t.first_chunk, t.num_ranges, chunk);
    uint32_t first = (chunk - t.first_chunk[s.range]) * t.chunk, left = t.count[s.range] - first;
    s.begin = ((size_t) t.offset[s.range] + first) * UNIT;
    s.end = s.begin + (size_t) (left < t.chunk ? left : t.chunk) * UNIT;
    s.scale = a.settled ? range_scale[s.range] : a.grad_scale;
    s.rate = a.settled ? range_rate[s.range] : a.rate * factor_of(t, s.range);
    if (a.kind == HPCT_CUDA_UPDATE_LARS) /* not times the rate */
        s.decay = t.adapt[s.range] ? a.decay : 0;
    else
        s.decay = a.decay * factor_of(t, s.range);
    return s;
}

/* Scaled and clipped by value. NaN stays NaN. */
__device__ inline float gradient(float g, float scale, float limit)
{
    g *= scale;
    if (limit > 0)
        g = g > limit ? limit : g < -limit ? -limit : g;
    return g;
}

/* ---- one element of each optimizer; see nn/backend/backend.h ---- */

__device__ inline void sgd(const hpct_cuda_update_args &a, const span &s, float g, float *w,
                           float *m)
{
    float step = -s.rate * g, change = step;
    if (m != nullptr) {
        *m = change = a.momentum * *m + step;
        if (a.nesterov)
            change = a.momentum * change + step;
    }
    *w += change - s.decay * *w;
}

__device__ inline void moments(const hpct_cuda_update_args &a, float g, float *m, float *v)
{
    *m += (g - *m) * a.mix_1;
    *v += (g * g - *v) * a.mix_2;
}

/* s.rate is rate sqrt(bias_2) / bias_1. */
__device__ inline void adam(const hpct_cuda_update_args &a, const span &s, float g, float *w,
                            float *m, float *v)
{
    moments(a, g, m, v);
    *w -= s.decay * *w;
    *w -= s.rate * *m / (sqrtf(*v) + a.epsilon);
}

__device__ inline float lamb_step(const hpct_cuda_update_args &a, float m, float v)
{
    return m / a.bias_1 / (sqrtf(v / a.bias_2) + a.epsilon);
}

__device__ inline void lars(const hpct_cuda_update_args &a, const span &s, float g, float *w,
                            float *m)
{
    *m = a.momentum * *m - s.rate * (g + s.decay * *w);
    *w += *m;
}

__device__ inline void rmsprop(const hpct_cuda_update_args &a, const span &s, float g, float *w,
                               float *m, float *v, float *average)
{
    *v += (g * g - *v) * a.mix_2;
    float spread = *v;
    if (average != nullptr) {
        *average += (g - *average) * a.mix_2;
        spread -= *average * *average;
        spread = spread < 0 ? 0 : spread;
    }
    float change = s.rate * g / sqrtf(spread + a.epsilon);
    if (m != nullptr)
        change = *m = a.momentum * *m + change;
    *w -= s.decay * *w + change;
}

/* ---- sums of squares over a block, stored by its first thread ---- */

__device__ inline void leave_sums(double first, double second, double *to)
{
    __shared__ double of_warp[THREADS / WARP][2];
    first = warp_sum(first);
    second = warp_sum(second);
    __syncthreads(); /* earlier sums have been read */
    if (threadIdx.x % WARP == 0) {
        of_warp[threadIdx.x / WARP][0] = first;
        of_warp[threadIdx.x / WARP][1] = second;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum[2] = {0, 0};
        for (int i = 0; i < THREADS / WARP; i++) {
            sum[0] += of_warp[i][0];
            sum[1] += of_warp[i][1];
        }
        to[0] = sum[0];
        to[1] = sum[1];
    }
}

/* ---- the update ---- */

template <hpct_cuda_update_kind K, bool FIRST_SLOT>
__global__ void __launch_bounds__(THREADS)
    update(const __grid_constant__ hpct_cuda_update_table t,
           const __grid_constant__ hpct_cuda_update_args given)
{
    if (is_left_out(given))
        return;
    const hpct_cuda_update_args a = current(given);
    constexpr bool has_v = K == HPCT_CUDA_UPDATE_ADAM || K == HPCT_CUDA_UPDATE_LAMB_MOMENTS ||
                           K == HPCT_CUDA_UPDATE_LAMB_APPLY;
    constexpr bool applies =
        K == HPCT_CUDA_UPDATE_LAMB_APPLY; /* no gradient read, no slot changed */
    const uint32_t chunks = t.first_chunk[t.num_ranges];
    float *const param = a.param, *const slot_m = a.slot[0], *const slot_v = a.slot[1];
    const float *const grad = a.grad;
    for (uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const span s = span_of(t, a, chunk);
        double weights = 0, steps = 0;
        for (size_t i = s.begin + VALUES * threadIdx.x; i < s.end; i += VALUES * THREADS) {
            float w[VALUES], g[VALUES] = {}, m[VALUES] = {}, v[VALUES] = {};
            load(param + i, w);
            if constexpr (!applies)
                load(grad + i, g);
            if constexpr (FIRST_SLOT)
                load(slot_m + i, m);
            if constexpr (has_v)
                load(slot_v + i, v);
#pragma unroll
            for (int k = 0; k < VALUES; k++) {
                float own = gradient(g[k], s.scale, a.clipvalue);
                if constexpr (K == HPCT_CUDA_UPDATE_SGD)
                    sgd(a, s, own, &w[k], FIRST_SLOT ? &m[k] : nullptr);
                if constexpr (K == HPCT_CUDA_UPDATE_ADAM)
                    adam(a, s, own, &w[k], &m[k], &v[k]);
                if constexpr (K == HPCT_CUDA_UPDATE_LARS)
                    lars(a, s, own, &w[k], &m[k]);
                if constexpr (K == HPCT_CUDA_UPDATE_LAMB_MOMENTS) {
                    moments(a, own, &m[k], &v[k]);
                    w[k] -= s.decay * w[k];
                    float u = lamb_step(a, m[k], v[k]);
                    weights += (double) w[k] * (double) w[k];
                    steps += (double) u * (double) u;
                }
                if constexpr (K == HPCT_CUDA_UPDATE_LAMB_APPLY)
                    w[k] -= s.rate * lamb_step(a, m[k], v[k]);
            }
            store(w, param + i);
            if constexpr (FIRST_SLOT && !applies)
                store(m, slot_m + i);
            if constexpr (has_v && !applies)
                store(v, slot_v + i);
        }
        if constexpr (K == HPCT_CUDA_UPDATE_LAMB_MOMENTS)
            leave_sums(weights, steps, partial_sums[chunk]);
    }
}

/* A kernel of its own: two of its slots may be missing, and it has a third. */
__global__ void __launch_bounds__(THREADS)
    update_rmsprop(const __grid_constant__ hpct_cuda_update_table t,
                   const __grid_constant__ hpct_cuda_update_args given)
{
    if (is_left_out(given))
        return;
    const hpct_cuda_update_args a = current(given);
    const uint32_t chunks = t.first_chunk[t.num_ranges];
    float *const slot_m = a.slot[0], *const slot_v = a.slot[1], *const slot_a = a.slot[2];
    for (uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const span s = span_of(t, a, chunk);
        for (size_t i = s.begin + VALUES * threadIdx.x; i < s.end; i += VALUES * THREADS) {
            float w[VALUES], g[VALUES], v[VALUES], m[VALUES] = {}, average[VALUES] = {};
            load(a.param + i, w);
            load(a.grad + i, g);
            load(slot_v + i, v);
            if (slot_m != nullptr)
                load(slot_m + i, m);
            if (slot_a != nullptr)
                load(slot_a + i, average);
#pragma unroll
            for (int k = 0; k < VALUES; k++)
                rmsprop(a, s, gradient(g[k], s.scale, a.clipvalue), &w[k],
                        slot_m != nullptr ? &m[k] : nullptr, &v[k],
                        slot_a != nullptr ? &average[k] : nullptr);
            store(w, a.param + i);
            store(v, slot_v + i);
            if (slot_m != nullptr)
                store(m, slot_m + i);
            if (slot_a != nullptr)
                store(average, slot_a + i);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    norms(const __grid_constant__ hpct_cuda_update_table t,
          const __grid_constant__ hpct_cuda_update_args given, bool scaled)
{
    const hpct_cuda_update_args a = current(given);
    const uint32_t chunks = t.first_chunk[t.num_ranges];
    for (uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const span s = span_of(t, a, chunk);
        const float scale = scaled ? s.scale : 1, limit = scaled ? a.clipvalue : 0;
        double weights = 0, gradients = 0;
        for (size_t i = s.begin + VALUES * threadIdx.x; i < s.end; i += VALUES * THREADS) {
            float w[VALUES] = {}, g[VALUES];
            if (scaled) /* weights' squares are needed only then */
                load(a.param + i, w);
            load(a.grad + i, g);
#pragma unroll
            for (int k = 0; k < VALUES; k++) {
                double own = (double) gradient(g[k], scale, limit);
                weights += (double) w[k] * (double) w[k];
                gradients += own * own;
            }
        }
        leave_sums(weights, gradients, partial_sums[chunk]);
    }
}

/* One block per range adds its chunks in order. */
__global__ void __launch_bounds__(THREADS) finish(const __grid_constant__ hpct_cuda_update_table t)
{
    const int range = (int) blockIdx.x;
    double sum[2] = {0, 0};
    for (uint32_t c = t.first_chunk[range] + threadIdx.x; c < t.first_chunk[range + 1];
         c += THREADS) {
        sum[0] += partial_sums[c][0];
        sum[1] += partial_sums[c][1];
    }
    leave_sums(sum[0], sum[1], range_sums[range]);
    if (threadIdx.x == 0) {
        shared_sums[range][0] = (float) range_sums[range][0];
        shared_sums[range][1] = (float) range_sums[range][1];
    }
}

__global__ void copy_sums(int first, int count)
{
    for (int i = first + (int) threadIdx.x; i < first + count; i += (int) blockDim.x) {
        range_sums[i][0] = (double) shared_sums[i][0];
        range_sums[i][1] = (double) shared_sums[i][1];
    }
}

/* ---- factors derived from sums ---- */

/* Factor that limits a gradient of norm `length` to `limit`. */
__device__ inline float shorten(double length, float limit)
{
    return length <= (double) limit ? 1 : (float) ((double) limit / length);
}

__global__ void __launch_bounds__(HPCT_CUDA_UPDATE_RANGES)
    settle(const __grid_constant__ hpct_cuda_update_table t,
           const __grid_constant__ hpct_cuda_update_args given, hpct_cuda_update_settle what,
           float limit, bool first)
{
    const hpct_cuda_update_args a = current(given);
    const int i = (int) threadIdx.x;
    if (what == HPCT_CUDA_SETTLE_COUNT_ALL && i == 0) {
        double sum = first ? 0 : all_squares;
        for (int k = 0; k < t.num_ranges; k++)
            sum += range_sums[k][1];
        all_squares = sum;
    }
    if (i >= t.num_ranges)
        return;
    const double w = sqrt(range_sums[i][0]), g = sqrt(range_sums[i][1]);
    switch (what) {
    case HPCT_CUDA_SETTLE_COUNT_ALL:
        break;
    case HPCT_CUDA_SETTLE_START:
        range_scale[i] = a.grad_scale;
        range_rate[i] = a.rate * factor_of(t, i);
        break;
    case HPCT_CUDA_SETTLE_CLIP_ALL:
        range_scale[i] =
            a.grad_scale * shorten(fabs((double) a.grad_scale) * sqrt(all_squares), limit);
        range_rate[i] = a.rate * factor_of(t, i);
        break;
    case HPCT_CUDA_SETTLE_CLIP_RANGE:
        range_scale[i] *= shorten(fabs((double) range_scale[i]) * g, limit);
        break;
    case HPCT_CUDA_SETTLE_LARS:
        if (t.adapt[i] && w > 0 && g > 0)
            range_rate[i] *= (float) ((double) a.trust * w / (g + (double) a.decay * w));
        break;
    case HPCT_CUDA_SETTLE_LAMB:
        if (w > 0 && g > 0)
            range_rate[i] *= (float) (w / g);
        break;
    }
}

/* ---- loss scaling ---- */

__global__ void set_infinite(hpct_graph_loss_scaling *s, bool measured)
{
    if (threadIdx.x == 0)
        s->infinite = measured && !isfinite(all_squares) ? 1 : 0;
}

__global__ void move(hpct_graph_loss_scaling *s, double beta_1, double beta_2)
{
    if (threadIdx.x == 0)
        hpct_graph_loss_scaling_move(s, s->infinite == 0, beta_1, beta_2);
}

/* ---- launchers ---- */

static unsigned blocks_of(const hpct_cuda_update_table *t)
{
    return blocks_for(t->first_chunk[t->num_ranges], 1);
}

static cudaError_t launch_finish(const hpct_cuda_update_table *t)
{
    return HPCT_CUDA_LAUNCH(finish, (unsigned) t->num_ranges, THREADS, *t);
}

cudaError_t hpct_cuda_launch_update(const hpct_cuda_update_table *table,
                                    const hpct_cuda_update_args *args)
{
    static void (*const kernels[])(hpct_cuda_update_table, hpct_cuda_update_args) = {
        update<HPCT_CUDA_UPDATE_SGD, true>,        update<HPCT_CUDA_UPDATE_ADAM, true>,
        update<HPCT_CUDA_UPDATE_LARS, true>,       update<HPCT_CUDA_UPDATE_LAMB_MOMENTS, true>,
        update<HPCT_CUDA_UPDATE_LAMB_APPLY, true>, update_rmsprop};
    const bool plain = args->kind == HPCT_CUDA_UPDATE_SGD && args->slot[0] == nullptr;
    cudaError_t error =
        HPCT_CUDA_LAUNCH((plain ? update<HPCT_CUDA_UPDATE_SGD, false> : kernels[args->kind]),
                         blocks_of(table), THREADS, *table, *args);
    if (error == cudaSuccess && args->kind == HPCT_CUDA_UPDATE_LAMB_MOMENTS)
        error = launch_finish(table);
    return error;
}

cudaError_t hpct_cuda_launch_update_norms(const hpct_cuda_update_table *table,
                                          const hpct_cuda_update_args *args, bool scaled)
{
    cudaError_t error = HPCT_CUDA_LAUNCH(norms, blocks_of(table), THREADS, *table, *args, scaled);
    return error == cudaSuccess ? launch_finish(table) : error;
}

cudaError_t hpct_cuda_update_sums(float **sums)
{
    void *address = nullptr;
    cudaError_t error = cudaGetSymbolAddress(&address, shared_sums);
    *sums = (float *) address;
    return error;
}

cudaError_t hpct_cuda_launch_update_take(int first, int count)
{
    return HPCT_CUDA_LAUNCH(copy_sums, 1, THREADS, first, count);
}

cudaError_t hpct_cuda_launch_update_settle(const hpct_cuda_update_table *table,
                                           const hpct_cuda_update_args *args,
                                           hpct_cuda_update_settle what, float limit, bool first)
{
    return HPCT_CUDA_LAUNCH(settle, 1, HPCT_CUDA_UPDATE_RANGES, *table, *args, what, limit, first);
}

cudaError_t hpct_cuda_launch_scaling_judge(hpct_graph_loss_scaling *scaling, bool measured)
{
    return HPCT_CUDA_LAUNCH(set_infinite, 1, WARP, scaling, measured);
}

cudaError_t hpct_cuda_launch_scaling_move(hpct_graph_loss_scaling *scaling, double beta_1,
                                          double beta_2)
{
    return HPCT_CUDA_LAUNCH(move, 1, WARP, scaling, beta_1, beta_2);
}
