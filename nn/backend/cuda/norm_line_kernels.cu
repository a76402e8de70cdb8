/* Per-channel vectors between a convolution and the normalization fused to it: scale and shift for
 * forward, sums for the normalization's backward. */
#include "nn/backend/cuda/kernel.cuh"

/* Above this, 16-bit T cannot resolve a channel's values. */
constexpr float FLAT = 30000;

/* The shift is computed from the rounded scale, so that adding the mean's part to it loses no more
 * accuracy than rounding x to T. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    vectors(int channels, hpct_norm_line line, T *scale, T *shift, float *gamma)
{
    const int c = (int) grid_index();
    if (c >= channels)
        return;
    const bool flat = !(fabsf(line.mean[c] * line.scale[c]) <= FLAT);
    round_to(flat ? 0 : line.scale[c], &scale[c]);
    round_to(fmaf(-line.mean[c], value_of(scale[c]), line.shift[c]), &shift[c]);
    gamma[c] = line.scale[c] / line.inverse[c];
}

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

static unsigned blocks_of_channels(int channels)
{
    return (unsigned) ((channels + THREADS - 1) / THREADS);
}

cudaError_t hpct_launch_norm_vectors(hpct_queue queue, hpct_number type, int channels,
                                     hpct_norm_line line, void *scale, void *shift, float *gamma)
{
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = vectors<T>;
        HPCT_LAUNCH(kernel, blocks_of_channels(channels), THREADS, queue, channels, line,
                    (T *) scale, (T *) shift, gamma);
    });
}

cudaError_t hpct_launch_norm_take_sums(const hpct_norm *n, const float *given, float *sums,
                                       float *diff_gamma, float *diff_beta)
{
    HPCT_LAUNCH(take_sums, blocks_of_channels(n->channels), THREADS, n->queue, n->channels,
                hpct_norm_line_step((size_t) n->channels), given, n->notes.inverse, sums,
                diff_gamma, diff_beta);
    return cudaGetLastError();
}
