/* Kernels of direct convolutions: one thread per element of the result or of the source's gradient;
 * for the kernel gradient, blocks of 32 output channels and 8 shares of the cells, in parts, whose
 * sums are added at the end. */
#include "nn/backend/cuda/kernel.cuh"

#define HPCT_ELEMENT static __device__ inline
#define HPCT_LOAD(x) value_of(x)
#define HPCT_NAME(name) name
#define HPCT_VALUE float
#include "nn/backend/cuda/direct_body.h"
#undef HPCT_VALUE
#define HPCT_VALUE __nv_bfloat16
#include "nn/backend/cuda/direct_body.h"
#undef HPCT_VALUE
#define HPCT_VALUE __half
#include "nn/backend/cuda/direct_body.h"

namespace
{

constexpr unsigned MOST_BLOCKS = 1u << 20;
constexpr int LANES = 32, SHARES = 8;
constexpr size_t CELLS_OF_A_THREAD = 32, MOST_PARTS = 256, MOST_SUMS = 1u << 22;

template <typename T>
__global__ void __launch_bounds__(THREADS)
    forward(const hpct_cuda_direct d, size_t count, const T *src, const float *kernel,
            const float *bias, bool relu, T *dst)
{
    const size_t step = (size_t) gridDim.x * blockDim.x;
    for (size_t at = (size_t) blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const int o = (int) (at % (size_t) d.out_c);
        const size_t cell = at / (size_t) d.out_c;
        float value = forward_at(&d, src, kernel, (int) (cell / (size_t) d.cells),
                                 (int) (cell % (size_t) d.cells), o);
        if (bias != nullptr)
            value += bias[o];
        round_to(relu && !(value > 0) ? 0 : value, &dst[at]);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) data(const hpct_cuda_direct d, size_t count,
                                                const T *diff_dst, const float *kernel, T *diff_src)
{
    const size_t step = (size_t) gridDim.x * blockDim.x;
    for (size_t at = (size_t) blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const int c = (int) (at % (size_t) d.in_c);
        size_t rest = at / (size_t) d.in_c;
        const int x = (int) (rest % (size_t) d.in_w);
        rest /= (size_t) d.in_w;
        const int y = (int) (rest % (size_t) d.in_h), s = (int) (rest / (size_t) d.in_h);
        round_to(data_at(&d, diff_dst, kernel, s, y, x, c), &diff_src[at]);
    }
}

/* sums[part][elements of the kernel] */
template <typename T>
__global__ void __launch_bounds__(LANES *SHARES)
    weights(const hpct_cuda_direct d, size_t cells, size_t cells_of_a_part, const T *src,
            const T *diff_dst, float *sums)
{
    __shared__ float shared[SHARES][LANES];
    const int ins = d.in_c / d.groups, lanes = (d.out_c + LANES - 1) / LANES;
    const int o = (int) (blockIdx.x % (unsigned) lanes) * LANES + (int) threadIdx.x;
    int rest = (int) (blockIdx.x / (unsigned) lanes);
    const int c = rest % ins;
    rest /= ins;
    const int v = rest % d.kernel_w, u = rest / d.kernel_w;
    const size_t begin = blockIdx.y * cells_of_a_part;
    const size_t end = begin + cells_of_a_part < cells ? begin + cells_of_a_part : cells;
    shared[threadIdx.y][threadIdx.x] =
        o < d.out_c ? weights_at(&d, src, diff_dst, o, u, v, c, begin + threadIdx.y, end, SHARES)
                    : 0;
    __syncthreads();
    if (threadIdx.y != 0 || o >= d.out_c)
        return;
    float sum = 0;
    for (int share = 0; share < SHARES; share++)
        sum += shared[share][threadIdx.x];
    const size_t numbers = (size_t) d.out_c * (size_t) (d.kernel_h * d.kernel_w) * (size_t) ins;
    sums[blockIdx.y * numbers + hpct_cuda_direct_kernel_offset(&d, o, u, v, c)] = sum;
}

size_t numbers_of(const hpct_cuda_direct *d)
{
    return (size_t) d->out_c * (size_t) d->kernel_h * (size_t) d->kernel_w *
           (size_t) (d->in_c / d->groups);
}

size_t parts_of(const hpct_cuda_direct *d)
{
    const size_t cells = (size_t) d->n * (size_t) d->cells, least = SHARES * CELLS_OF_A_THREAD;
    size_t parts = (cells + least - 1) / least, most = MOST_SUMS / numbers_of(d);
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts;
}

unsigned blocks_of(size_t count)
{
    const size_t blocks = (count + THREADS - 1) / THREADS;
    return blocks < MOST_BLOCKS ? (unsigned) blocks : MOST_BLOCKS;
}

} // namespace

size_t hpct_cuda_direct_scratch_bytes(const hpct_cuda_direct *d)
{
    const size_t parts = parts_of(d), numbers = numbers_of(d);
    if (parts == 1)
        return 0;
    return parts * numbers * sizeof(float) +
           hpct_cuda_bias_scratch_bytes(HPCT_FP32, parts, numbers);
}

cudaError_t hpct_cuda_direct_forward(hpct_precision type, const hpct_cuda_direct *d,
                                     const void *src, const float *kernel, const float *bias,
                                     bool relu, void *dst)
{
    const size_t count = (size_t) d->n * (size_t) d->cells * (size_t) d->out_c;
    return for_type(type, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(forward<decltype(zero)>, blocks_of(count), THREADS, *d, count, src,
                                kernel, bias, relu, dst);
    });
}

cudaError_t hpct_cuda_direct_data(hpct_precision type, const hpct_cuda_direct *d,
                                  const void *diff_dst, const float *kernel, void *diff_src)
{
    const size_t count = (size_t) d->n * (size_t) d->in_h * (size_t) d->in_w * (size_t) d->in_c;
    return for_type(type, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(data<decltype(zero)>, blocks_of(count), THREADS, *d, count,
                                diff_dst, kernel, diff_src);
    });
}

cudaError_t hpct_cuda_direct_weights(hpct_precision type, const hpct_cuda_direct *d,
                                     const void *src, const void *diff_dst, float *diff_kernel,
                                     float *scratch)
{
    const size_t cells = (size_t) d->n * (size_t) d->cells, wanted = parts_of(d);
    const size_t cells_of_a_part = (cells + wanted - 1) / wanted;
    const size_t lanes = ((size_t) d->out_c + LANES - 1) / LANES;
    const dim3 grid((unsigned) (lanes * (numbers_of(d) / (size_t) d->out_c)), (unsigned) wanted);
    cudaError_t error = for_type(type, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(weights<decltype(zero)>, grid, dim3(LANES, SHARES), *d, cells,
                                cells_of_a_part, src, diff_dst, wanted > 1 ? scratch : diff_kernel);
    });
    if (error != cudaSuccess || wanted == 1)
        return error;
    return hpct_cuda_bias_mask_and_sum(HPCT_FP32, wanted, numbers_of(d), nullptr, scratch,
                                       diff_kernel, scratch + wanted * numbers_of(d));
}
