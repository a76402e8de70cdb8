/* The cpu backend: oneDNN for convolutions, average pooling and matrix products, vector loops for
 * the rest. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/collective.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/cpu/shim.h"
#include "nn/backend/ref/ref.h"

#include <omp.h>

static hpct_status make_conv2d(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    if (hpct_cpu_direct_fits(spec, build))
        return hpct_cpu_make_direct(out, spec, build);
    if (spec->window.cells > 0)
        return hpct_fail(HPCT_ERR_INTERNAL,
                         "a convolution of some cells has to pass a gradient on");
    if (build->precision != HPCT_BF16 || !hpct_cpu_conv2d_bf16_fits(spec))
        return hpct_cpu_make_conv2d(out, spec, build);
    return hpct_cpu_product_fits(spec) ? hpct_cpu_make_product(out, spec, build)
                                       : hpct_cpu_make_conv2d_bf16(out, spec, build);
}

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_op *op = NULL;
    hpct_status status = HPCT_OK;
    switch (spec->kind) {
    case HPCT_OP_CONV2D:
        status = make_conv2d(&op, spec, build);
        break;
    case HPCT_OP_MAX_POOL2D:
        status = hpct_cpu_make_max_pool2d(&op, spec, build);
        break;
    case HPCT_OP_AVERAGE_POOL2D:
        status = hpct_cpu_make_average_pool2d(&op, spec, build);
        break;
    case HPCT_OP_DENSE:
        status = build->precision == HPCT_BF16 ? hpct_cpu_make_product(&op, spec, build)
                                               : hpct_cpu_make_dense(&op, spec, build);
        break;
    case HPCT_OP_RELU:
        status = hpct_cpu_make_relu(&op, spec, build);
        break;
    case HPCT_OP_BATCH_NORM:
        status = hpct_cpu_make_batch_norm(&op, spec, build);
        break;
    case HPCT_OP_PAD2D:
        status = hpct_cpu_make_pad2d(&op, spec, build);
        break;
    case HPCT_OP_ADD:
    case HPCT_OP_CONCATENATE:
        status = hpct_cpu_make_join(&op, spec, build);
        break;
    case HPCT_OP_RELU6:
    case HPCT_OP_SIGMOID:
    case HPCT_OP_TANH:
    case HPCT_OP_GELU:
    case HPCT_OP_SILU:
    case HPCT_OP_HARD_SILU:
    case HPCT_OP_ELU:
        status = hpct_cpu_make_eltwise(&op, spec, build);
        break;
    case HPCT_OP_HARD_SIGMOID:
    case HPCT_OP_LEAKY_RELU:
        status = hpct_cpu_make_piecewise(&op, spec, build);
        break;
    case HPCT_OP_MULTIPLY:
        status = hpct_cpu_make_multiply(&op, spec, build);
        break;
    case HPCT_OP_NORMALIZATION:
    case HPCT_OP_PRELU:
        status = hpct_cpu_make_line(&op, spec, build);
        break;
    case HPCT_OP_DROPOUT:
        status = hpct_cpu_make_dropout(&op, spec, build);
        break;
    case HPCT_OP_RESCALING:
        status = hpct_cpu_make_rescaling(&op, spec, build);
        break;
    case HPCT_OP_RESIZING:
    case HPCT_OP_RANDOM_CROP:
    case HPCT_OP_RANDOM_FLIP:
        status = hpct_cpu_make_picture(&op, spec, build);
        break;
    case HPCT_OP_RANDOM_AFFINE:
    case HPCT_OP_RANDOM_TONE:
        status = hpct_cpu_make_variation(&op, spec, build);
        break;
    case HPCT_OP_CONV2D_TRANSPOSE:
        status = hpct_cpu_make_conv2d_transpose(&op, spec, build);
        break;
    case HPCT_OP_GROUP_NORM:
        status = hpct_cpu_make_group_norm(&op, spec, build);
        break;
    case HPCT_OP_PERMUTE:
    case HPCT_OP_GAUSSIAN_NOISE:
        status = hpct_cpu_make_samples(&op, spec, build);
        break;
    case HPCT_OP_SUM_PARTS:
    case HPCT_OP_GATHER_PARTS:
    case HPCT_OP_GATHER_SAMPLES:
        status = hpct_make_collective(&op, spec, build);
        break;
    case HPCT_OP_SOFTMAX: /* some hundred values per batch */
    case HPCT_OP_KINDS:
        status = hpct_ref_make_op(&op, spec, build);
        break;
    }
    if (status != HPCT_OK && op != NULL) {
        op->class->destroy(op);
        op = NULL;
    }
    *out = op;
    return status;
}

static bool divides(int channels)
{
    return channels % HPCT_CHANNEL_BLOCK == 0;
}

/* bf16 products and convolutions require channels last. */
static bool fuses(hpct_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    return fusion == HPCT_FUSION_POOL && hpct_cpu_direct_merges(spec, build, other);
}

static hpct_blocking blocking(const hpct_op_spec *spec, hpct_precision precision)
{
    const hpct_window *w = &spec->window;
    bool can = precision == HPCT_FP32 && hpct_shim_prefers_blocks(1);
    switch (spec->kind) {
    case HPCT_OP_CONV2D:
        can = can && w->groups == 1 && divides(w->in_c) && divides(w->out_c) &&
              hpct_shim_prefers_blocks(w->kernel_h * w->kernel_w);
        break;
    case HPCT_OP_BATCH_NORM:
    case HPCT_OP_MAX_POOL2D:
        return can ? HPCT_BLOCKS_EACH : HPCT_BLOCKS_NEVER;
    case HPCT_OP_CONCATENATE:
        for (int k = 0; k < spec->join.count; k++)
            can = can && divides(spec->join.size[k]);
        break;
    case HPCT_OP_GATHER_PARTS:
        can = can && spec->parts.rows > 1 && divides(spec->parts.split.unit);
        break;
    case HPCT_OP_AVERAGE_POOL2D:
    case HPCT_OP_PAD2D:
    case HPCT_OP_ADD:
    case HPCT_OP_RELU:
    case HPCT_OP_RELU6:
    case HPCT_OP_SIGMOID:
    case HPCT_OP_TANH:
    case HPCT_OP_GELU:
    case HPCT_OP_SILU:
    case HPCT_OP_HARD_SIGMOID:
    case HPCT_OP_HARD_SILU:
    case HPCT_OP_LEAKY_RELU:
    case HPCT_OP_ELU:
    case HPCT_OP_GATHER_SAMPLES:
        break;
    case HPCT_OP_MULTIPLY:
        can = can && !spec->join.broadcasts;
        break;
    case HPCT_OP_DENSE:
    case HPCT_OP_SOFTMAX:
    case HPCT_OP_NORMALIZATION:
    case HPCT_OP_PRELU:
    case HPCT_OP_DROPOUT:
    case HPCT_OP_RESCALING:
    case HPCT_OP_RESIZING:
    case HPCT_OP_RANDOM_CROP:
    case HPCT_OP_RANDOM_FLIP:
    case HPCT_OP_RANDOM_AFFINE:
    case HPCT_OP_RANDOM_TONE:
    case HPCT_OP_GROUP_NORM:
    case HPCT_OP_PERMUTE:
    case HPCT_OP_GAUSSIAN_NOISE:
    case HPCT_OP_CONV2D_TRANSPOSE:
    case HPCT_OP_SUM_PARTS:
    case HPCT_OP_KINDS:
        can = false;
        break;
    }
    return can ? HPCT_BLOCKS_ALL : HPCT_BLOCKS_NEVER;
}

typedef struct vector {
    float factor, *dst;
} vector;

static void scale_part(size_t first, size_t count, void *arg)
{
    const vector *v = arg;
    hpct_loops_best()->scale(count, v->factor, v->dst + first);
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    vector v = {.factor = factor, .dst = dst};
    hpct_loops_split(count, 16384, scale_part, &v);
    return HPCT_OK;
}

static hpct_status check_precision(hpct_precision precision)
{
    if (precision == HPCT_FP32 || (precision == HPCT_BF16 && hpct_shim_has_bf16()))
        return HPCT_OK;
    if (precision == HPCT_FP16)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "precision fp16 needs a GPU: use --device cuda or --precision fp32");
    return hpct_fail(HPCT_ERR_CONFIG,
                     "precision bf16 needs a processor with AVX512_BF16 or AMX, which %s does not "
                     "find here: take --precision fp32",
                     hpct_shim_version());
}

void hpct_cpu_set_threads(int threads)
{
    omp_set_num_threads(threads < 1 ? 1 : threads);
}

int hpct_cpu_threads(void)
{
    return omp_get_max_threads();
}

const char *hpct_cpu_library(void)
{
    return hpct_shim_version();
}

const hpct_backend hpct_backend_cpu = {
    .name = "cpu",
    .allocate = hpct_host_allocate,
    .release = hpct_host_release,
    .check_precision = check_precision,
    .make_op = make_op,
    .fuses = fuses,
    .blocking = blocking,
    .loss = hpct_cpu_loss,
    .update = hpct_cpu_update,
    .penalize = hpct_cpu_penalize,
    .accumulate = hpct_cpu_accumulate,
    .scale = scale,
    .measure = hpct_cpu_measure,
};
