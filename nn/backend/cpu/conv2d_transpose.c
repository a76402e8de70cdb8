/* Conv2DTranspose by oneDNN's convolution backward. */
#include "nn/backend/cpu/cpu.h"

#include "nn/backend/cpu/loops.h"
#include "nn/backend/transposed.h"

typedef struct bias_job {
    size_t channels;
    const float *bias;
    float *dst;
} bias_job;

static void add_rows(size_t first, size_t count, void *arg)
{
    const bias_job *j = arg;
    for (size_t r = first; r < first + count; r++)
        hpct_cpu_loops_best()->add(j->channels, j->bias, j->dst + r * j->channels);
}

static hpct_status add_bias(const hpct_op *op, size_t rows, size_t channels, const float *bias,
                            float *dst)
{
    (void) op;
    bias_job j = {channels, bias, dst};
    hpct_cpu_loops_split(rows, 16384 / channels + 1, add_rows, &j);
    return HPCT_OK;
}

static hpct_status sum_bias(const hpct_op *op, size_t rows, size_t channels, float *diff,
                            float *bias, float *scratch)
{
    (void) op, (void) scratch;
    hpct_cpu_loops_best()->mask_and_sum(rows, channels, NULL, diff, bias);
    return HPCT_OK;
}

static size_t scratch_bytes(const hpct_op *op, size_t rows, size_t channels)
{
    (void) op, (void) rows, (void) channels;
    return 0;
}

hpct_status hpct_cpu_make_conv2d_transpose(hpct_op **out, const hpct_op_spec *spec,
                                           const hpct_op_build *build)
{
    static const hpct_backend_transposed_parts parts = {hpct_cpu_make_conv2d, add_bias, sum_bias,
                                                        scratch_bytes};
    return hpct_backend_make_transposed(out, spec, build, &parts);
}
