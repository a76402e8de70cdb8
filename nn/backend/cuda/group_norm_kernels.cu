/* Layer and group normalization. A team of threads, a warp or a block, has one group of a row. */
#include "nn/backend/cuda/kernel.cuh"

constexpr int TEAMS = 4;           /* warps per block, if a team is a warp */
constexpr size_t OF_A_WARP = 2048; /* most elements of a group for one */
constexpr int LINES = 64;          /* least lines of a part of the parameters' sums */
constexpr int PARTS = 256;         /* most parts */

/* Sum over the team, equal on every thread. All teams of a block call it. */
__device__ inline float team_sum(float x)
{
    __shared__ float of_warp[THREADS / WARP];
    x = warp_sum(x);
    if (blockDim.x == WARP)
        return x;
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (unsigned w = 0; w < blockDim.x / WARP; w++)
        sum += of_warp[w];
    __syncthreads();
    return sum;
}

/* The group with number `index`. */
struct group {
    size_t at;      /* of its first element */
    int first;      /* its first channel */
    unsigned width; /* its channels */
    unsigned count; /* its elements */
};

__device__ inline group group_of(const hpct_cuda_group_norm &norm, size_t index)
{
    const unsigned width = (unsigned) (norm.channels / norm.groups);
    const int first = (int) (index % (size_t) norm.groups * width);
    return {index / (size_t) norm.groups * (size_t) norm.cells * (size_t) norm.channels +
                (size_t) first,
            first, width, (unsigned) norm.cells * width};
}

/* Offset of element e, and its channel in the group. */
__device__ inline size_t element_of(const hpct_cuda_group_norm &norm, const group &g, unsigned e,
                                    unsigned *channel)
{
    *channel = e % g.width;
    return g.at + (size_t) (e / g.width) * (size_t) norm.channels + *channel;
}

__device__ inline float factor_of(const hpct_cuda_group_norm &norm, const group &g,
                                  unsigned channel)
{
    return norm.gamma != nullptr ? norm.gamma[(unsigned) g.first + channel] : 1;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    group_norm_forward(const __grid_constant__ hpct_cuda_group_norm norm, const T *src, T *dst)
{
    const size_t groups = norm.rows * (size_t) norm.groups;
    for (size_t i = (size_t) blockIdx.x * blockDim.y + threadIdx.y; i < groups;
         i += (size_t) gridDim.x * blockDim.y) {
        const group g = group_of(norm, i);
        unsigned channel;
        float sum = 0, squares = 0;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x)
            sum += value_of(src[element_of(norm, g, e, &channel)]);
        const float mean = team_sum(sum) / (float) g.count;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const float off = value_of(src[element_of(norm, g, e, &channel)]) - mean;
            squares += off * off;
        }
        const float inverse = 1 / sqrtf(team_sum(squares) / (float) g.count + norm.epsilon);
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float shift = norm.beta != nullptr ? norm.beta[(unsigned) g.first + channel] : 0;
            round_to((value_of(src[at]) - mean) * inverse * factor_of(norm, g, channel) + shift,
                     &dst[at]);
        }
        if (threadIdx.x == 0) {
            norm.notes[2 * i] = mean;
            norm.notes[2 * i + 1] = inverse;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    group_norm_backward(const __grid_constant__ hpct_cuda_group_norm norm, const T *src,
                        const T *diff, bool add, T *diff_src)
{
    const size_t groups = norm.rows * (size_t) norm.groups;
    for (size_t i = (size_t) blockIdx.x * blockDim.y + threadIdx.y; i < groups;
         i += (size_t) gridDim.x * blockDim.y) {
        const group g = group_of(norm, i);
        const float mean = norm.notes[2 * i], inverse = norm.notes[2 * i + 1];
        unsigned channel;
        float sum = 0, sum_hat = 0;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float d = value_of(diff[at]) * factor_of(norm, g, channel);
            sum += d;
            sum_hat += d * (value_of(src[at]) - mean) * inverse;
        }
        sum = team_sum(sum) / (float) g.count;
        sum_hat = team_sum(sum_hat) / (float) g.count;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float d = value_of(diff[at]) * factor_of(norm, g, channel),
                        hat = (value_of(src[at]) - mean) * inverse;
            float change[1] = {inverse * (d - sum - hat * sum_hat)};
            put_values(change, add, diff_src + at);
        }
    }
}

/* A thread has one channel of the lines of one part; a line is a cell of a row. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    sum_params(const __grid_constant__ hpct_cuda_group_norm norm, const T *src, const T *diff,
               float *partial)
{
    const int c = (int) (blockIdx.x * blockDim.x + threadIdx.x);
    const size_t lines = norm.rows * (size_t) norm.cells, parts = gridDim.y,
                 begin = lines * blockIdx.y / parts, end = lines * (blockIdx.y + 1) / parts;
    if (c >= norm.channels)
        return;
    const size_t group = (size_t) (c / (norm.channels / norm.groups));
    float sum = 0, sum_hat = 0;
    for (size_t line = begin; line < end; line++) {
        const size_t at = line * (size_t) norm.channels + (size_t) c,
                     note = 2 * (line / (size_t) norm.cells * (size_t) norm.groups + group);
        const float d = value_of(diff[at]);
        sum += d;
        sum_hat += d * (value_of(src[at]) - norm.notes[note]) * norm.notes[note + 1];
    }
    float *to = partial + (size_t) blockIdx.y * 2 * (size_t) norm.channels;
    to[c] = sum_hat;
    to[norm.channels + c] = sum;
}

__global__ void __launch_bounds__(THREADS)
    add_parts(int channels, int parts, const float *partial, float *diff_gamma, float *diff_beta)
{
    const int c = (int) (blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0, sum_hat = 0;
    if (c >= channels)
        return;
    for (int p = 0; p < parts; p++) {
        const float *from = partial + (size_t) p * 2 * (size_t) channels;
        sum_hat += from[c];
        sum += from[channels + c];
    }
    if (diff_gamma != nullptr)
        diff_gamma[c] = sum_hat;
    if (diff_beta != nullptr)
        diff_beta[c] = sum;
}

/* Blocks and threads for all groups. */
static dim3 team_of(const hpct_cuda_group_norm *norm)
{
    const size_t count = (size_t) norm->cells * (size_t) (norm->channels / norm->groups);
    return count <= OF_A_WARP ? dim3(WARP, TEAMS) : dim3(THREADS, 1);
}

static unsigned blocks_of(const hpct_cuda_group_norm *norm)
{
    return blocks_for(norm->queue, norm->rows * (size_t) norm->groups, (int) team_of(norm).y);
}

cudaError_t hpct_cuda_launch_group_norm(const hpct_cuda_group_norm *norm, const void *src,
                                        void *dst)
{
    return for_type(norm->type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = group_norm_forward<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks_of(norm), team_of(norm), norm->queue, *norm,
                         (const T *) src, (T *) dst);
    });
}

cudaError_t hpct_cuda_launch_group_norm_backward(const hpct_cuda_group_norm *norm, const void *src,
                                                 const void *diff_dst, bool add, void *diff_src)
{
    return for_type(norm->type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = group_norm_backward<T>;
        HPCT_CUDA_LAUNCH(kernel, blocks_of(norm), team_of(norm), norm->queue, *norm,
                         (const T *) src, (const T *) diff_dst, add, (T *) diff_src);
    });
}

int hpct_cuda_group_norm_parts(size_t rows, int cells)
{
    const size_t parts = rows * (size_t) cells / LINES;
    return parts < 1 ? 1 : parts < PARTS ? (int) parts : PARTS;
}

cudaError_t hpct_cuda_launch_group_norm_params(const hpct_cuda_group_norm *norm, const void *src,
                                               const void *diff_dst, float *partial,
                                               float *diff_gamma, float *diff_beta)
{
    const int parts = hpct_cuda_group_norm_parts(norm->rows, norm->cells);
    const unsigned across = ((unsigned) norm->channels + THREADS - 1) / THREADS;
    cudaError_t error = for_type(norm->type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = sum_params<T>;
        HPCT_CUDA_LAUNCH(kernel, dim3(across, (unsigned) parts), THREADS, norm->queue, *norm,
                         (const T *) src, (const T *) diff_dst, partial);
    });
    if (error != cudaSuccess)
        return error;
    HPCT_CUDA_LAUNCH(add_parts, across, THREADS, norm->queue, norm->channels, parts, partial,
                     diff_gamma, diff_beta);
    return cudaGetLastError();
}
