/* Conv2DTranspose by cuDNN's convolution backward. */
#include "nn/backend/cuda/ops.h"

#include "nn/backend/transposed.h"

static hpct_status add_bias(const hpct_op *op, size_t rows, size_t channels, const float *bias,
                            float *dst)
{
    return HPCT_CUDA(hpct_cuda_bias_add(op->build.values, rows, channels, bias, false, dst));
}

static hpct_status sum_bias(const hpct_op *op, size_t rows, size_t channels, float *diff,
                            float *bias, float *scratch)
{
    return HPCT_CUDA(
        hpct_cuda_bias_mask_and_sum(op->build.values, rows, channels, NULL, diff, bias, scratch));
}

static size_t scratch_bytes(const hpct_op *op, size_t rows, size_t channels)
{
    return hpct_cuda_bias_scratch_bytes(op->build.values, rows, channels);
}

hpct_status hpct_cuda_make_conv2d_transpose(hpct_op **out, const hpct_op_spec *spec,
                                            const hpct_op_build *build)
{
    static const hpct_backend_transposed_parts parts = {hpct_cuda_make_conv2d, add_bias, sum_bias,
                                                        scratch_bytes};
    return hpct_backend_make_transposed(out, spec, build, &parts);
}
