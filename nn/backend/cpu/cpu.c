/* The cpu backend: oneDNN for convolutions, average pooling and matrix products, vector loops for
 * the rest. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/collective.h"
#include "nn/backend/cpu/backend.h"
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

static hpct_status make_dense(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    return build->precision == HPCT_BF16 ? hpct_cpu_make_product(out, spec, build)
                                         : hpct_cpu_make_dense(out, spec, build);
}

static bool divides(int channels)
{
    return channels % HPCT_GRAPH_CHANNEL_BLOCK == 0;
}

static bool conv2d_blocks(const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    return w->groups == 1 && divides(w->in_c) && divides(w->out_c) &&
           hpct_cpu_shim_prefers_blocks(w->kernel_h * w->kernel_w);
}

static bool concatenate_blocks(const hpct_op_spec *spec)
{
    bool can = true;
    for (int k = 0; k < spec->join.count; k++)
        can = can && divides(spec->join.size[k]);
    return can;
}

static bool multiply_blocks(const hpct_op_spec *spec)
{
    return !spec->join.broadcasts;
}

static bool gather_blocks(const hpct_op_spec *spec)
{
    return spec->parts.rows > 1 && divides(spec->parts.split.unit);
}

#define ELEMENT(kind, ...) [HPCT_OP_##kind] = {hpct_cpu_make_activation, HPCT_BACKEND_BLOCKS_ALL}

/* How each kind is made (softmax, of some hundred values per batch, by the reference), and whether
 * it works on channel blocks. bf16 products and convolutions require channels last. */
static const struct {
    hpct_cpu_maker *make;
    hpct_backend_blocking blocking;
    bool (*blocks)(const hpct_op_spec *spec); /* NULL: whatever its specification */
    const hpct_op_class *class;               /* without `make`: of one that is only a class */
} kinds[HPCT_OP_KINDS] = {
    HPCT_GRAPH_ELEMENT_ROWS(ELEMENT),
    [HPCT_OP_CONV2D] = {make_conv2d, HPCT_BACKEND_BLOCKS_ALL, conv2d_blocks},
    [HPCT_OP_CONV2D_TRANSPOSE] = {hpct_cpu_make_conv2d_transpose},
    [HPCT_OP_DENSE] = {make_dense},
    [HPCT_OP_MAX_POOL2D] = {hpct_cpu_make_max_pool2d, HPCT_BACKEND_BLOCKS_EACH},
    [HPCT_OP_AVERAGE_POOL2D] = {hpct_cpu_make_prims, HPCT_BACKEND_BLOCKS_ALL},
    [HPCT_OP_PAD2D] = {.class = &hpct_cpu_pad2d, .blocking = HPCT_BACKEND_BLOCKS_ALL},
    [HPCT_OP_BATCH_NORM] = {hpct_cpu_make_batch_norm, HPCT_BACKEND_BLOCKS_EACH},
    [HPCT_OP_GROUP_NORM] = {hpct_cpu_make_group_norm},
    [HPCT_OP_ADD] = {.class = &hpct_cpu_add, .blocking = HPCT_BACKEND_BLOCKS_ALL},
    [HPCT_OP_CONCATENATE] = {NULL, HPCT_BACKEND_BLOCKS_ALL, concatenate_blocks,
                             &hpct_cpu_concatenate},
    [HPCT_OP_MULTIPLY] = {hpct_cpu_make_multiply, HPCT_BACKEND_BLOCKS_ALL, multiply_blocks},
    [HPCT_OP_NORMALIZATION] = {hpct_cpu_make_line},
    [HPCT_OP_PRELU] = {hpct_cpu_make_line},
    [HPCT_OP_DROPOUT] = {hpct_cpu_make_dropout},
    [HPCT_OP_GAUSSIAN_NOISE] = {.class = &hpct_cpu_gaussian_noise},
    [HPCT_OP_PERMUTE] = {.class = &hpct_cpu_permute},
    [HPCT_OP_RESCALING] = {.class = &hpct_cpu_rescaling},
    [HPCT_OP_RESIZING] = {hpct_cpu_make_picture},
    [HPCT_OP_RANDOM_CROP] = {hpct_cpu_make_picture},
    [HPCT_OP_RANDOM_FLIP] = {hpct_cpu_make_variation},
    [HPCT_OP_RANDOM_AFFINE] = {hpct_cpu_make_variation},
    [HPCT_OP_RANDOM_TONE] = {hpct_cpu_make_variation},
    [HPCT_OP_SUM_PARTS] = {hpct_backend_make_collective},
    [HPCT_OP_GATHER_PARTS] = {hpct_backend_make_collective, HPCT_BACKEND_BLOCKS_ALL, gather_blocks},
    [HPCT_OP_GATHER_SAMPLES] = {hpct_backend_make_collective, HPCT_BACKEND_BLOCKS_ALL},
};

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_op *op = NULL;
    hpct_cpu_maker *make = kinds[spec->kind].make;
    if (kinds[spec->kind].class != NULL)
        return hpct_op_new(out, sizeof **out, kinds[spec->kind].class, spec, build);
    hpct_status status = make != NULL ? make(&op, spec, build) : hpct_ref_make_op(&op, spec, build);
    if (status != HPCT_OK && op != NULL) {
        op->class->destroy(op);
        op = NULL;
    }
    *out = op;
    return status;
}

static bool fuses(hpct_backend_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    return fusion == HPCT_BACKEND_FUSION_POOL && hpct_cpu_direct_merges(spec, build, other);
}

static hpct_backend_blocking blocking(const hpct_op_spec *spec, hpct_precision precision)
{
    bool (*blocks)(const hpct_op_spec *) = kinds[spec->kind].blocks;
    bool can = precision == HPCT_FP32 && hpct_cpu_shim_prefers_blocks(1) &&
               (blocks == NULL || blocks(spec));
    return can ? kinds[spec->kind].blocking : HPCT_BACKEND_BLOCKS_NEVER;
}

typedef struct vector {
    float factor, *dst;
} vector;

static void scale_part(size_t first, size_t count, void *arg)
{
    const vector *v = arg;
    hpct_cpu_loops_best()->scale(count, v->factor, v->dst + first);
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    vector v = {.factor = factor, .dst = dst};
    hpct_cpu_loops_split(count, 16384, scale_part, &v);
    return HPCT_OK;
}

static hpct_status check_precision(hpct_precision precision)
{
    if (precision == HPCT_FP32 || (precision == HPCT_BF16 && hpct_cpu_shim_has_bf16()))
        return HPCT_OK;
    if (precision == HPCT_FP16)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "precision fp16 needs a GPU: use --device cuda or --precision fp32");
    return hpct_fail(HPCT_ERR_CONFIG,
                     "precision bf16 needs a processor with AVX512_BF16 or AMX, which %s does not "
                     "find here: take --precision fp32",
                     hpct_cpu_shim_version());
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
    return hpct_cpu_shim_version();
}

const hpct_backend hpct_cpu_backend = {
    .name = "cpu",
    .allocate = hpct_backend_host_allocate,
    .release = hpct_backend_host_release,
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
