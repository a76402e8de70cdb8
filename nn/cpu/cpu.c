/* The cpu backend: oneDNN for convolutions, poolings and matrix products, own loops for the rest.
 */
#include "nn/cpu/cpu.h"

#include "nn/cpu/loops.h"
#include "nn/ref/ref.h"

#include <omp.h>

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    hpct_op *op = NULL;
    hpct_status status = HPCT_OK;
    switch (spec->kind) {
    case HPCT_OP_CONV2D:
        status = hpct_cpu_direct_fits(spec, build) ? hpct_cpu_make_direct(&op, spec, build)
                                                   : hpct_cpu_make_conv2d(&op, spec, build);
        break;
    case HPCT_OP_MAX_POOL2D:
    case HPCT_OP_AVERAGE_POOL2D:
        status = hpct_cpu_make_pool2d(&op, spec, build);
        break;
    case HPCT_OP_DENSE:
        status = hpct_cpu_make_dense(&op, spec, build);
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
        status = hpct_cpu_make_eltwise(&op, spec, build);
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
    case HPCT_OP_SOFTMAX: /* some hundred numbers a batch */
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

void hpct_cpu_set_threads(int threads)
{
    omp_set_num_threads(threads < 1 ? 1 : threads);
}

int hpct_cpu_threads(void)
{
    return omp_get_max_threads();
}

const hpct_backend hpct_backend_cpu = {
    .name = "cpu",
    .allocate = hpct_host_allocate,
    .release = hpct_host_release,
    .make_op = make_op,
    .loss = hpct_ref_loss, /* some hundred numbers a batch */
    .update = hpct_cpu_update,
    .accumulate = hpct_cpu_accumulate,
    .scale = scale,
    .measure = hpct_cpu_measure,
};
