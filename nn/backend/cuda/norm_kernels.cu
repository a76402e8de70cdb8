/* Batch normalization: two passes over memory in forward, two in backward, with the same access
 * pattern: a thread has a pack of channels and strided rows of its block's part, so that
 * per-channel values stay in registers. Statistics are merged from means and squared distances
 * (Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
 * Variances, 1979), without cancellation. */
#include "nn/backend/cuda/norm_walk.cuh"

int hpct_cuda_norm_parts(hpct_precision type, int channels)
{
    return most_parts(layout_of(channels, width_of_channels(type, channels)), BLOCKS_PER_PROCESSOR);
}

/* ---- statistics ---- */

struct moment {
    float count, mean, squares;
};

__device__ inline void join(moment *a, const moment &b)
{
    float count = a->count + b.count;
    if (b.count == 0)
        return;
    float weight = b.count / count, delta = b.mean - a->mean;
    a->mean += delta * weight;
    a->squares += b.squares + delta * delta * weight * a->count;
    a->count = count;
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS, FEWER_BLOCKS)
    moments(size_t rows, int channels, const T *src, float *partial)
{
    __shared__ float shared_mean[V][THREADS], shared_squares[V][THREADS], shared_count[THREADS];
    const walk w = walk_of<V>(rows, channels);
    float mean[V] = {}, squares[V] = {}, count = 0;
    each_batch(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V];
#pragma unroll
        for (int b = 0; b < B; b++)
            load(src + (row + b * w.step) * (size_t) channels + w.channel, x[b]);
        const float weight = B / (count + B), cross = weight * count;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float own = 0, off = 0;
#pragma unroll
            for (int b = 0; b < B; b++)
                own += x[b][k];
            own *= 1.0f / B;
#pragma unroll
            for (int b = 0; b < B; b++)
                off += (x[b][k] - own) * (x[b][k] - own);
            float delta = own - mean[k];
            mean[k] += delta * weight;
            squares[k] += off + delta * delta * cross;
        }
        count += B;
    });
    const int at = (int) (threadIdx.y * blockDim.x + threadIdx.x);
    shared_count[at] = count;
#pragma unroll
    for (int k = 0; k < V; k++) {
        shared_mean[k][at] = mean[k];
        shared_squares[k][at] = squares[k];
    }
    for (int half = (int) blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int) threadIdx.y >= half)
            continue;
        const int other = at + half * (int) blockDim.x;
        const float more = shared_count[other], before = shared_count[at];
        for (int k = 0; k < V; k++) {
            moment own = {before, shared_mean[k][at], shared_squares[k][at]};
            join(&own, {more, shared_mean[k][other], shared_squares[k][other]});
            shared_mean[k][at] = own.mean;
            shared_squares[k][at] = own.squares;
        }
        shared_count[at] = before + more;
    }
    if (threadIdx.y == 0 && w.inside) {
        float *to = partial + (size_t) blockIdx.y * 2 * (size_t) channels + w.channel;
        for (int k = 0; k < V; k++) {
            to[k] = shared_mean[k][at];
            to[channels + k] = shared_squares[k][at];
        }
    }
}

/* ---- final merge, one thread per channel: blocks of FINISH channels by as many parts ---- */

constexpr int FINISH = 32;
constexpr int AT_ONCE = 4; /* parts per thread and iteration */

/* Arguments to compute notes and moving statistics. */
struct settling {
    int channels;
    float momentum, epsilon;
    const float *gamma, *beta, *bias;
    float *moving_mean, *moving_variance;
    hpct_cuda_norm_notes notes;
};

static settling settling_of(const hpct_cuda_norm *n)
{
    return {n->channels, n->momentum,    n->epsilon,         n->gamma, n->beta,
            n->bias,     n->moving_mean, n->moving_variance, n->notes};
}

__device__ inline float bias_of(const settling &s, int c)
{
    return s.bias != nullptr ? s.bias[c] : 0;
}

__device__ inline void note(const settling &s, int c, float mean, float variance)
{
    float inverse = 1 / sqrtf(variance + s.epsilon);
    s.notes.mean[c] = mean;
    s.notes.inverse[c] = inverse;
    s.notes.scale[c] = (s.gamma != nullptr ? s.gamma[c] : 1) * inverse;
    s.notes.shift[c] = s.beta != nullptr ? s.beta[c] : 0;
}

__device__ inline void settle_channel(const settling &s, int c, float rows, float mean,
                                      float squares)
{
    float variance = squares / rows, keep = s.momentum;
    note(s, c, mean, variance);
    s.moving_mean[c] = keep * s.moving_mean[c] + (1 - keep) * (mean + bias_of(s, c));
    s.moving_variance[c] = keep * s.moving_variance[c] + (1 - keep) * variance;
}

/* Stores this replica's moments. squares NULL: there are no others, so notes and moving statistics
 * are final. */
__device__ inline void note_own(const settling &s, int c, float rows, const moment &all,
                                float *squares, float *room)
{
    if (squares == nullptr) {
        settle_channel(s, c, rows, all.mean, all.squares);
        if (c == 0)
            *s.notes.rows = rows;
        return;
    }
    s.notes.mean[c] = all.mean;
    squares[c] = all.squares;
    room[c] = all.mean * rows;
    if (c == 0)
        room[s.channels] = rows;
}

__global__ void __launch_bounds__(FINISH *FINISH)
    finish_moments(size_t rows, int parts, const float *partial, settling s, float *squares,
                   float *room)
{
    __shared__ moment shared[FINISH][FINISH + 1];
    const int c = (int) (blockIdx.x * FINISH + threadIdx.x), y = (int) threadIdx.y;
    moment all = {0, 0, 0};
    for (int first = y; first < parts && c < s.channels; first += AT_ONCE * FINISH) {
        moment some[AT_ONCE] = {}; /* all are loaded before the first is merged */
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int p = first + i * FINISH;
            if (p >= parts)
                continue;
            const float *from = partial + (size_t) p * 2 * (size_t) s.channels + c;
            size_t count = first_row(rows, (unsigned) p + 1, (unsigned) parts) -
                           first_row(rows, (unsigned) p, (unsigned) parts);
            some[i] = {(float) count, from[0], from[s.channels]};
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            join(&all, some[i]);
    }
    shared[y][threadIdx.x] = all;
    for (int half = FINISH / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half)
            join(&shared[y][threadIdx.x], shared[y + half][threadIdx.x]);
    }
    if (y == 0 && c < s.channels)
        note_own(s, c, (float) rows, shared[0][threadIdx.x], squares, room);
}

__global__ void __launch_bounds__(THREADS)
    middle(size_t rows, settling s, const float *room, float *squares)
{
    const int c = (int) grid_index();
    if (c >= s.channels)
        return;
    const float all = room[c] / room[s.channels], delta = s.notes.mean[c] - all;
    s.notes.mean[c] = all;
    squares[c] += (float) rows * delta * delta;
    if (c == 0)
        *s.notes.rows = room[s.channels];
}

__global__ void __launch_bounds__(THREADS) end_moments(settling s, const float *squares)
{
    const int c = (int) grid_index();
    if (c < s.channels)
        settle_channel(s, c, *s.notes.rows, s.notes.mean[c], squares[c]);
}

__global__ void __launch_bounds__(THREADS) take_moving(settling s)
{
    const int c = (int) grid_index();
    if (c < s.channels)
        note(s, c, s.moving_mean[c] - bias_of(s, c), s.moving_variance[c]);
}

/* ---- forward ---- */

template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(THREADS)
    apply(size_t rows, int channels, hpct_cuda_norm_notes notes, const T *src, T *dst)
{
    const walk w = walk_of<V>(rows, channels);
    if (!w.inside)
        return;
    own_line<V> p;
    load_line(notes, w.channel, p);
    each_batch(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V];
#pragma unroll
        for (int b = 0; b < B; b++)
            load(src + (row + b * w.step) * (size_t) channels + w.channel, x[b]);
#pragma unroll
        for (int b = 0; b < B; b++) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                float y = normal(x[b][k], p.mean[k], p.scale[k], p.shift[k]);
                x[b][k] = RELU && !(y > 0) ? 0 : y;
            }
            store(x[b], dst + (row + b * w.step) * (size_t) channels + w.channel);
        }
    });
}

/* ---- backward ---- */

/* The gradient masked by the ReLU, i.e. where forward's result was positive. */
template <bool RELU, int V>
__device__ inline float behind_relu(float g, float x, const own_line<V> &p, int k)
{
    return !RELU || normal(x, p.mean[k], p.scale[k], p.shift[k]) > 0 ? g : 0;
}

template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(THREADS, RELU ? FEWER_BLOCKS : BLOCKS_PER_PROCESSOR)
    sums_of(size_t rows, int channels, hpct_cuda_norm_notes notes, const T *src, const T *diff,
            float *partial)
{
    __shared__ float shared[2][V][THREADS];
    const walk w = walk_of<V>(rows, channels);
    own_line<V> p = {};
    float sum[2][V] = {}; /* of g, g (x - mean) */
    if (w.inside && RELU)
        load_line(notes, w.channel, p);
    else if (w.inside)
        load_or(notes.mean + w.channel, 0, p.mean);
    each_batch(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], g[B][V];
#pragma unroll
        for (int b = 0; b < B; b++) {
            size_t at = (row + b * w.step) * (size_t) channels + w.channel;
            load(src + at, x[b]);
            load(diff + at, g[b]);
        }
#pragma unroll
        for (int b = 0; b < B; b++) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                float own = behind_relu<RELU>(g[b][k], x[b][k], p, k);
                sum[0][k] += own;
                sum[1][k] = fmaf(own, x[b][k] - p.mean[k], sum[1][k]);
            }
        }
    });
    const int at = add_rows(sum, shared);
    if (threadIdx.y == 0 && w.inside) {
        float *to = partial + (size_t) blockIdx.y * 2 * (size_t) channels + w.channel;
        for (int k = 0; k < V; k++) {
            to[k] = shared[0][k][at];
            to[channels + k] = shared[1][k][at];
        }
    }
}

__global__ void __launch_bounds__(FINISH *FINISH)
    finish_sums(int channels, int parts, const float *partial, const float *inverse, float *sums,
                float *diff_gamma, float *diff_beta)
{
    __shared__ float shared[2][FINISH][FINISH + 1];
    const int c = (int) (blockIdx.x * FINISH + threadIdx.x), x = (int) threadIdx.x,
              y = (int) threadIdx.y;
    float sum = 0, sum_x = 0;
    for (int p = y; p < parts && c < channels; p += FINISH) {
        const float *from = partial + (size_t) p * 2 * (size_t) channels + c;
        sum += from[0];
        sum_x += from[channels];
    }
    shared[0][y][x] = sum;
    shared[1][y][x] = sum_x;
    for (int half = FINISH / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half) {
            shared[0][y][x] += shared[0][y + half][x];
            shared[1][y][x] += shared[1][y + half][x];
        }
    }
    if (y != 0 || c >= channels)
        return;
    if (sums != nullptr) {
        sums[c] = shared[0][0][x];
        sums[channels + c] = shared[1][0][x];
    }
    if (diff_beta != nullptr)
        diff_beta[c] = shared[0][0][x];
    if (diff_gamma != nullptr)
        diff_gamma[c] = shared[1][0][x] * inverse[c];
}

/* scale (g - (sum + (x - mean) inverse^2 sum_x) / rows) */
template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(THREADS)
    backward(size_t rows, int channels, hpct_cuda_norm_notes notes, const float *sums, const T *src,
             const T *diff, bool add, T *diff_src)
{
    const walk w = walk_of<V>(rows, channels);
    if (!w.inside)
        return;
    own_line<V> p;
    float slope[V], offset[V];
    load_line(notes, w.channel, p);
    const float all = *notes.rows;
#pragma unroll
    for (int k = 0; k < V; k++) {
        float inverse = notes.inverse[w.channel + k];
        offset[k] = -p.scale[k] * sums[w.channel + k] / all;
        slope[k] = -p.scale[k] * inverse * inverse * sums[channels + w.channel + k] / all;
    }
    each_batch(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], g[B][V];
#pragma unroll
        for (int b = 0; b < B; b++) {
            size_t at = (row + b * w.step) * (size_t) channels + w.channel;
            load(src + at, x[b]);
            load(diff + at, g[b]);
        }
#pragma unroll
        for (int b = 0; b < B; b++) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                float own = behind_relu<RELU>(g[b][k], x[b][k], p, k);
                g[b][k] = fmaf(own, p.scale[k], fmaf(x[b][k] - p.mean[k], slope[k], offset[k]));
            }
            put_values(g[b], add, diff_src + (row + b * w.step) * (size_t) channels + w.channel);
        }
    });
}

/* From the sums that another operation has stored. */
__global__ void __launch_bounds__(THREADS)
    take_sums(int channels, size_t step, const float *given, const float *inverse, float *sums,
              float *diff_gamma, float *diff_beta)
{
    const int c = (int) grid_index();
    if (c >= channels)
        return;
    sums[c] = given[c];
    sums[channels + c] = given[step + c] / inverse[c];
    if (diff_beta != nullptr)
        diff_beta[c] = given[c];
    if (diff_gamma != nullptr)
        diff_gamma[c] = given[step + c];
}

/* ---- launchers ---- */

static unsigned finish_blocks(int channels)
{
    return (unsigned) ((channels + FINISH - 1) / FINISH);
}

static unsigned channel_blocks(int channels)
{
    return (unsigned) ((channels + THREADS - 1) / THREADS);
}

cudaError_t hpct_cuda_launch_norm_begin(const hpct_cuda_norm *n, const void *src, float *squares,
                                        float *room)
{
    cudaError_t error = for_norm(n, is_aligned(src), [&](auto zero, auto width) {
        constexpr int V = decltype(width)::value;
        return launch_layout(moments<decltype(zero), V>, n, layout_for(n, V, FEWER_BLOCKS), src,
                             n->partial);
    });
    if (error != cudaSuccess)
        return error;
    return HPCT_CUDA_LAUNCH(finish_moments, finish_blocks(n->channels), dim3(FINISH, FINISH),
                            n->rows, parts_of(n, FEWER_BLOCKS), n->partial, settling_of(n), squares,
                            room);
}

cudaError_t hpct_cuda_launch_norm_moments(const hpct_cuda_norm *norm, const void *src)
{
    return hpct_cuda_launch_norm_begin(norm, src, nullptr, nullptr);
}

cudaError_t hpct_cuda_launch_norm_middle(const hpct_cuda_norm *n, const float *room, float *squares)
{
    return HPCT_CUDA_LAUNCH(middle, channel_blocks(n->channels), THREADS, n->rows, settling_of(n),
                            room, squares);
}

cudaError_t hpct_cuda_launch_norm_end(const hpct_cuda_norm *n, const float *squares)
{
    return HPCT_CUDA_LAUNCH(end_moments, channel_blocks(n->channels), THREADS, settling_of(n),
                            squares);
}

cudaError_t hpct_cuda_launch_norm_moving(const hpct_cuda_norm *n)
{
    return HPCT_CUDA_LAUNCH(take_moving, channel_blocks(n->channels), THREADS, settling_of(n));
}

cudaError_t hpct_cuda_launch_norm_apply(const hpct_cuda_norm *n, const void *src, void *dst)
{
    return for_norm(n, is_aligned(src, dst), [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        return launch_layout(n->relu ? apply<T, V, true> : apply<T, V, false>, n, layout_for(n, V),
                             n->notes, src, dst);
    });
}

cudaError_t norm_finish_sums(const hpct_cuda_norm *n, unsigned parts, const float *partial,
                             const float *inverse, float *sums, float *diff_gamma, float *diff_beta)
{
    return HPCT_CUDA_LAUNCH(finish_sums, finish_blocks(n->channels), dim3(FINISH, FINISH),
                            n->channels, parts, partial, inverse, sums, diff_gamma, diff_beta);
}

cudaError_t hpct_cuda_launch_norm_sums(const hpct_cuda_norm *n, const void *src,
                                       const void *diff_dst, float *sums, float *diff_gamma,
                                       float *diff_beta)
{
    const int blocks = n->relu ? FEWER_BLOCKS : BLOCKS_PER_PROCESSOR;
    cudaError_t error = for_norm(n, is_aligned(src, diff_dst), [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        return launch_layout(n->relu ? sums_of<T, V, true> : sums_of<T, V, false>, n,
                             layout_for(n, V, blocks), n->notes, src, diff_dst, n->partial);
    });
    return error == cudaSuccess ? norm_finish_sums(n, parts_of(n, blocks), n->partial,
                                                   n->notes.inverse, sums, diff_gamma, diff_beta)
                                : error;
}

cudaError_t hpct_cuda_launch_norm_backward(const hpct_cuda_norm *n, const void *src,
                                           const void *diff_dst, const float *sums, bool add,
                                           void *diff_src)
{
    return for_norm(n, is_aligned(src, diff_dst, diff_src), [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        return launch_layout(n->relu ? backward<T, V, true> : backward<T, V, false>, n,
                             layout_for(n, V), n->notes, sums, src, diff_dst, add, diff_src);
    });
}

cudaError_t hpct_cuda_launch_norm_take_sums(const hpct_cuda_norm *n, const float *given,
                                            float *sums, float *diff_gamma, float *diff_beta)
{
    return HPCT_CUDA_LAUNCH(take_sums, channel_blocks(n->channels), THREADS, n->channels,
                            hpct_backend_norm_line_step((size_t) n->channels), given,
                            n->notes.inverse, sums, diff_gamma, diff_beta);
}
