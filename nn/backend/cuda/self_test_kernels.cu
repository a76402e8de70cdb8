/* Samples of a convolution's results, computed one by one as in nn/backend/cuda/direct_body.h, and
 * their distance to what an engine has written. Half of the coordinates drawn are at an edge, where
 * padding and strides show. */
#include "nn/backend/cuda/kernel.cuh"
#include "nn/backend/cuda/random.cuh"

#define HPCT_ELEMENT static __device__ inline
#define HPCT_LOAD(x) value_of(x)
#define HPCT_NAME(name) proof_##name
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

/* The coordinate of an axis for a sample: an end of it, or anywhere. */
__device__ inline int coordinate(uint32_t drawn, int size)
{
    return (drawn & 1u) == 0   ? (int) ((drawn >> 2) % (uint32_t) size)
           : (drawn & 2u) == 0 ? 0
                               : size - 1;
}

struct place {
    int at[4]; /* along the axes in memory */
    size_t offset;
};

__device__ inline place place_of(int sample, const int (&size)[4])
{
    const words drawn = philox({{(uint32_t) sample, 0, 0, 0}}, 1);
    place p = {{}, 0};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        p.at[k] = coordinate(drawn.at[k], size[k]);
        p.offset = p.offset * (size_t) size[k] + (size_t) p.at[k];
    }
    return p;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    expect_image(const hpct_cuda_self_test_case c, const T *read, const T *other, const T *bias,
                 const T *initial, int samples, size_t *offset, float *expected)
{
    const hpct_cuda_direct &d = c.conv;
    const bool data = c.way == HPCT_CUDA_SELF_TEST_DATA;
    const int sizes[2][4] = {{d.n, d.out_h, d.out_w, d.out_c}, {d.n, d.in_h, d.in_w, d.in_c}};
    for (int i = (int) grid_index(); i < samples; i += (int) grid_step()) {
        const place p = place_of(i, sizes[data]);
        float value = data ? proof_data_at(&d, read, c.kernel, p.at[0], p.at[1], p.at[2], p.at[3])
                           : proof_forward_at(&d, read, c.kernel, p.at[0],
                                              p.at[1] * d.out_w + p.at[2], p.at[3]);
        if (initial != nullptr)
            value += value_of(initial[p.offset]);
        if (other != nullptr)
            value += value_of(other[p.offset]);
        if (bias != nullptr)
            value += value_of(bias[p.at[3]]);
        offset[i] = p.offset;
        expected[i] = c.relu && !(value > 0) ? 0 : value;
    }
}

/* A block for each sample: they are sums over all images. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    expect_kernel(const hpct_cuda_self_test_case c, const T *src, const T *diff_dst, int samples,
                  size_t *offset, float *expected)
{
    const hpct_cuda_direct &d = c.conv;
    const int size[4] = {d.out_c, d.kernel_h, d.kernel_w, d.in_c / d.groups};
    const size_t cells = (size_t) d.n * (size_t) d.cells;
    for (int i = (int) blockIdx.x; i < samples; i += (int) gridDim.x) {
        const place p = place_of(i, size);
        const float sum = block_sum(proof_weights_at(&d, src, diff_dst, p.at[0], p.at[1], p.at[2],
                                                     p.at[3], threadIdx.x, cells, THREADS));
        if (threadIdx.x == 0) {
            offset[i] = p.offset;
            expected[i] = sum;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    deviation(int samples, const size_t *offset, const float *expected, const T *got, float room,
              float relative, float *worst)
{
    __shared__ float part[THREADS / WARP];
    float most = 0;
    for (int i = (int) threadIdx.x; i < samples; i += THREADS) {
        const float apart =
            fabsf(value_of(got[offset[i]]) - expected[i]) / (room + relative * fabsf(expected[i]));
        most = apart <= HPCT_CUDA_SELF_TEST_MOST ? fmaxf(most, apart)
                                                 : HPCT_CUDA_SELF_TEST_MOST; /* NaN, too */
    }
    most = warp_max(most);
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < THREADS / WARP; k++)
            most = fmaxf(most, part[k]);
        *worst = most;
    }
}

} // namespace

cudaError_t hpct_cuda_launch_self_test_expect(const hpct_cuda_self_test_case *c, int samples,
                                              size_t *offset, float *expected)
{
    return for_type(c->type, [&](auto zero) {
        using T = decltype(zero);
        if (c->way == HPCT_CUDA_SELF_TEST_KERNEL)
            return HPCT_CUDA_LAUNCH(expect_kernel<T>, (unsigned) samples, THREADS, *c, c->src,
                                    c->dst, samples, offset, expected);
        return HPCT_CUDA_LAUNCH(expect_image<T>, (unsigned) (samples + THREADS - 1) / THREADS,
                                THREADS, *c, c->way == HPCT_CUDA_SELF_TEST_DATA ? c->dst : c->src,
                                c->other, c->bias, c->initial, samples, offset, expected);
    });
}

cudaError_t hpct_cuda_launch_self_test_deviation(hpct_precision type, int samples,
                                                 const size_t *offset, const float *expected,
                                                 const void *got, float room, float relative,
                                                 float *worst)
{
    return for_type(type, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(deviation<decltype(zero)>, 1, THREADS, samples, offset, expected,
                                got, room, relative, worst);
    });
}
