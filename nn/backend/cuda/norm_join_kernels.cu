/* An Add with BATCH_NORMs fused downstream and ReLU, and its backward, which computes the sums that
 * their backward begins with: both read everything once. The ReLU mask is stored as one bit per
 * value, a sixteenth of reading the result again. */
#include "nn/backend/cuda/norm_walk.cuh"

/* With three sources twice as many would use all registers and leave room for one block only. */
template <bool BOTH> constexpr int rows_at_once = BOTH ? BATCH / 2 : BATCH;

/* ---- forward ---- */

template <int V> struct own_line {
    float mean[V], scale[V], shift[V];
};

template <int V>
__device__ inline void load_line(const hpct_backend_norm_line &l, int c, own_line<V> &to)
{
    load_or(l.mean + c, 0, to.mean);
    load_or(l.scale + c, 0, to.scale);
    load_or(l.shift + c, 0, to.shift);
}

/* BOTH: the second input has a line, too. */
template <typename T, int V, bool RELU, bool BOTH>
__global__ void __launch_bounds__(THREADS)
    apply_and_add(size_t rows, int channels, hpct_backend_norm_line first,
                  hpct_backend_norm_line second, const T *a, const T *b, T *dst, uint8_t *open)
{
    const walk w = walk_of<V>(rows, channels);
    if (!w.inside)
        return;
    own_line<V> p, q = {};
    load_line(first, w.channel, p);
    if (BOTH)
        load_line(second, w.channel, q);
    each_batch<rows_at_once<BOTH>>(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], y[B][V];
#pragma unroll
        for (int i = 0; i < B; i++) {
            size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            load(a + at, x[i]);
            load(b + at, y[i]);
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            unsigned above = 0;
#pragma unroll
            for (int k = 0; k < V; k++) {
                float more = BOTH ? normal(y[i][k], q.mean[k], q.scale[k], q.shift[k]) : y[i][k];
                float sum = normal(x[i][k], p.mean[k], p.scale[k], p.shift[k]) + more;
                x[i][k] = RELU && !(sum > 0) ? 0 : sum;
                above |= (sum > 0 ? 1U : 0U) << k;
            }
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            store(x[i], dst + at);
            if (open != nullptr)
                open[at / V] = (uint8_t) above;
        }
    });
}

/* ---- backward ---- */

/* BOTH: the second input has a line, too. passes: an input's gradient is diff itself. */
template <typename T, int V, bool BOTH>
__global__ void __launch_bounds__(THREADS)
    add_back_and_sum(size_t rows, int channels, const float *mean_of_a, const float *mean_of_b,
                     const uint8_t *open, const T *a, const T *b,
                     const __grid_constant__ hpct_cuda_join j, bool passes, T *diff, float *partial)
{
    constexpr int SUMS = BOTH ? 3 : 2; /* of g, g (a - mean), g (b - mean) */
    __shared__ float shared[SUMS][V][THREADS];
    const walk w = walk_of<V>(rows, channels);
    float mean[2][V] = {}, sum[SUMS][V] = {};
    if (w.inside) {
        load_or(mean_of_a + w.channel, 0, mean[0]);
        if (BOTH)
            load_or(mean_of_b + w.channel, 0, mean[1]);
    }
    each_batch<rows_at_once<BOTH>>(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], y[B][V], g[B][V];
        unsigned above[B];
#pragma unroll
        for (int i = 0; i < B; i++) {
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            load(a + at, x[i]);
            if (BOTH)
                load(b + at, y[i]);
            load(diff + at, g[i]);
            above[i] = open[at / V];
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
#pragma unroll
            for (int k = 0; k < V; k++) {
                g[i][k] = (above[i] >> k & 1) != 0 ? g[i][k] : 0;
                sum[0][k] += g[i][k];
                sum[1][k] = fmaf(g[i][k], x[i][k] - mean[0][k], sum[1][k]);
                if (BOTH)
                    sum[SUMS - 1][k] = fmaf(g[i][k], y[i][k] - mean[1][k], sum[SUMS - 1][k]);
            }
            if (passes)
                store(g[i], diff + at);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                T *out = (T *) j.diff_src[k];
                if (out != nullptr && out != diff)
                    put_values(g[i], j.add[k], out + at);
            }
        }
    });
    const int own = (int) (threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
#pragma unroll
        for (int k = 0; k < V; k++)
            shared[s][k][own] = sum[s][k];
    }
    for (int half = (int) blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int) threadIdx.y >= half)
            continue;
        for (int s = 0; s < SUMS; s++) {
            for (int k = 0; k < V; k++)
                shared[s][k][own] += shared[s][k][own + half * (int) blockDim.x];
        }
    }
    if (threadIdx.y != 0 || !w.inside)
        return;
    for (int s = 1; s < SUMS; s++) { /* for each: [parts][2][channels] */
        float *to = partial + ((size_t) (s - 1) * gridDim.y + blockIdx.y) * 2 * (size_t) channels +
                    w.channel;
        for (int k = 0; k < V; k++) {
            to[k] = shared[0][k][own];
            to[channels + k] = shared[s][k][own];
        }
    }
}

/* ---- launchers ---- */

size_t hpct_cuda_norm_open_bytes(hpct_cuda_number type, size_t rows, int channels)
{
    const int width = width_of_channels(type, channels);
    return width > 1 ? rows * (size_t) channels / (size_t) width : 0;
}

/* Whether there are packs: each has a byte of the ReLU mask. */
static bool is_noted(const hpct_cuda_norm *n, bool aligned)
{
    return aligned && width_of_channels(n->type, n->channels) > 1;
}

cudaError_t hpct_cuda_launch_norm_add(const hpct_cuda_norm *n, const hpct_backend_norm_line line[2],
                                      const void *a, const void *b, void *dst, uint8_t *open)
{
    bool both = line[1].mean != nullptr;
    if (open != nullptr && !is_noted(n, is_aligned(a, b, dst)))
        return cudaErrorMisalignedAddress;
    return for_norm(n, is_aligned(a, b, dst), [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        layout l = layout_for(n, V);
        auto kernel =
            n->relu ? (both ? apply_and_add<T, V, true, true> : apply_and_add<T, V, true, false>)
                    : (both ? apply_and_add<T, V, false, true> : apply_and_add<T, V, false, false>);
        HPCT_CUDA_LAUNCH(kernel, grid_of(l), block_of(l), n->queue, n->rows, n->channels, line[0],
                         line[1], (const T *) a, (const T *) b, (T *) dst, open);
    });
}

cudaError_t hpct_cuda_launch_norm_add_backward(const hpct_cuda_norm *n,
                                               const hpct_backend_norm_line line[2],
                                               const uint8_t *open, const void *a, const void *b,
                                               const hpct_cuda_join *join, void *diff_dst,
                                               float *const sums[2])
{
    const bool both = line[1].mean != nullptr;
    const bool passes = join->diff_src[0] == diff_dst || join->diff_src[1] == diff_dst;
    const size_t each = (size_t) parts_of(n) * 2 * (size_t) n->channels,
                 step = hpct_backend_norm_line_step((size_t) n->channels);
    if (!is_noted(n, is_aligned(a, b, diff_dst, join->diff_src[0], join->diff_src[1])))
        return cudaErrorMisalignedAddress;
    cudaError_t error = for_norm(n, true, [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        if constexpr (V > 1) {
            layout l = layout_for(n, V);
            auto kernel = both ? add_back_and_sum<T, V, true> : add_back_and_sum<T, V, false>;
            HPCT_CUDA_LAUNCH(kernel, grid_of(l), block_of(l), n->queue, n->rows, n->channels,
                             line[0].mean, line[1].mean, open, (const T *) a, (const T *) b, *join,
                             passes, (T *) diff_dst, n->partial);
        }
    });
    for (int k = 0; k < 1 + both && error == cudaSuccess; k++)
        error = norm_finish_sums(n, parts_of(n), n->partial + (size_t) k * each, line[k].inverse,
                                 nullptr, sums[k] + step, sums[k]);
    return error;
}
