/* nn/backend/cuda/norm_walk.cuh - access pattern of batch normalization kernels over
 * [rows][channels]: a thread has a pack of channels and strided rows of its block's part, so that
 * per-channel values stay in registers. Private to nn/backend/cuda's .cu files. */
#ifndef HPCT_NN_BACKEND_CUDA_NORM_WALK_CUH
#define HPCT_NN_BACKEND_CUDA_NORM_WALK_CUH

#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/norm_line.h"

/* ---- distribution of rows ---- */

constexpr int BATCH = 4; /* rows that a thread loads before using the first */
/* Blocks per multiprocessor: whole waves of as many as its registers allow, or the last wave would
 * leave most of the device idle. */
constexpr int BLOCKS_PER_PROCESSOR = 4;
constexpr int FEWER_BLOCKS = 3; /* for kernels with more than 64 registers per thread */

/* A block: `across` packs of channels, `down` rows; the grid likewise. */
struct layout {
    int across, down;
    unsigned wide, parts; /* blocks */
};

static inline int width_of_channels(hpct_precision type, int channels)
{
    int wide = type == HPCT_FP32 ? WIDE<float> : WIDE<__half>;
    return channels % wide == 0 ? wide : 1;
}

static inline layout layout_of(int channels, int width)
{
    layout l;
    int packs = channels / width;
    for (l.across = 1; l.across < packs && l.across < WARP; l.across *= 2)
        ;
    l.down = THREADS / l.across;
    l.wide = (unsigned) ((packs + l.across - 1) / l.across);
    l.parts = 1;
    return l;
}

static inline int most_parts(const layout &l, int per_processor)
{
    int parts = hpct_cuda_gpu.multiprocessors * per_processor / (int) l.wide;
    return parts < 1 ? 1 : parts;
}

/* Number of parts: limited so that every thread has a batch of rows. */
static inline unsigned parts_of(const hpct_cuda_norm *n, int per_processor = BLOCKS_PER_PROCESSOR)
{
    layout l = layout_of(n->channels, width_of_channels(n->type, n->channels));
    size_t least = (size_t) l.down * BATCH, worth = (n->rows + least - 1) / least;
    size_t most = (size_t) most_parts(l, per_processor);
    return (unsigned) (worth < 1 ? 1 : worth < most ? worth : most);
}

static inline layout layout_for(const hpct_cuda_norm *n, int width,
                                int per_processor = BLOCKS_PER_PROCESSOR)
{
    layout l = layout_of(n->channels, width);
    l.parts = parts_of(n, per_processor);
    return l;
}

__device__ inline size_t first_row(size_t rows, unsigned part, unsigned parts)
{
    return rows * part / parts;
}

/* This thread's pack and rows. */
struct walk {
    int channel;
    bool inside;
    size_t row, end, step;
};

template <int V> __device__ inline walk walk_of(size_t rows, int channels)
{
    walk w;
    w.channel = (int) (blockIdx.x * blockDim.x + threadIdx.x) * V;
    w.inside = w.channel < channels;
    w.row = first_row(rows, blockIdx.y, gridDim.y) + threadIdx.y;
    w.end = first_row(rows, blockIdx.y + 1, gridDim.y);
    w.step = blockDim.y;
    return w;
}

/* Calls body(first row, constant number of rows: ROWS or one) for all rows of the walk. */
template <int ROWS = BATCH, typename Body> __device__ inline void each_batch(walk w, Body body)
{
    if (!w.inside)
        return;
    for (; w.row + (ROWS - 1) * w.step < w.end; w.row += ROWS * w.step)
        body(w.row, width_of<ROWS>());
    for (; w.row < w.end; w.row += w.step)
        body(w.row, width_of<1>());
}

template <int V> __device__ inline void load_or(const float *from, float otherwise, float (&to)[V])
{
#pragma unroll
    for (int k = 0; k < V; k++)
        to[k] = from != nullptr ? from[k] : otherwise;
}

/* Adds the sums of the threads that have the same channels: shared[sum][value][thread] of those
 * with threadIdx.y 0, which it returns the index of. */
template <int SUMS, int V>
__device__ inline int add_rows(const float (&sum)[SUMS][V], float (&shared)[SUMS][V][THREADS])
{
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
    return own;
}

/* ---- normalization ---- */

/* Of a pack of channels. */
template <int V> struct own_line {
    float mean[V], scale[V], shift[V];
};

/* From hpct_backend_norm_line or hpct_cuda_norm_notes. */
template <typename Line, int V>
__device__ inline void load_line(const Line &l, int c, own_line<V> &to)
{
    load_or(l.mean + c, 0, to.mean);
    load_or(l.scale + c, 0, to.scale);
    load_or(l.shift + c, 0, to.shift);
}

__device__ inline float normal(float x, float mean, float scale, float shift)
{
    return fmaf(x - mean, scale, shift);
}

/* ---- launching ---- */

template <typename Body>
static cudaError_t for_norm(const hpct_cuda_norm *n, bool aligned, Body body)
{
    return for_packs(n->type, aligned, (size_t) n->channels, body);
}

template <typename Kernel, typename... A>
static cudaError_t launch_layout(Kernel kernel, const hpct_cuda_norm *n, const layout &l,
                                 const A &...arguments)
{
    return HPCT_CUDA_LAUNCH(kernel, dim3(l.wide, l.parts),
                            dim3((unsigned) l.across, (unsigned) l.down), n->rows, n->channels,
                            arguments...);
}

/* From partial[parts][2][channels]: per channel, sums of the gradient g and of g (x - mean), and
 * the gradients of gamma and beta; NULL: not needed. */
cudaError_t norm_finish_sums(const hpct_cuda_norm *n, unsigned parts, const float *partial,
                             const float *inverse, float *sums, float *diff_gamma,
                             float *diff_beta);

#endif
