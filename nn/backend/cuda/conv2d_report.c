/* What is said of a convolution's plans: its kernels, and where it takes a slower way than cuDNN's
 * engine for the convolution itself. */
#include "nn/backend/cuda/conv2d_parts.h"

#include "base/status.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/tune.h"
#include "nn/backend/cuda/window.h"

#include <stdio.h>
#include <string.h>

static const char *const ways[HPCT_DNN_WAYS] = {
    [HPCT_DNN_FORWARD] = "forward",
    [HPCT_DNN_DATA] = "gradient of its source",
    [HPCT_DNN_WEIGHTS] = "gradient of its kernel",
};

static const hpct_cuda_conv_stage *stage_of(const hpct_cuda_conv *conv, hpct_dnn_way way, int batch)
{
    return &(way == HPCT_DNN_FORWARD ? conv->forward
             : way == HPCT_DNN_DATA  ? conv->data
                                     : conv->weights)[batch];
}

static bool is_needed(const hpct_cuda_conv *conv, hpct_dnn_way way)
{
    const hpct_op_build *build = &conv->op.build;
    return way == HPCT_DNN_FORWARD ||
           (build->training && (way == HPCT_DNN_DATA ? build->needs_diff_src : !build->frozen));
}

/* ---- the time of a direct kernel ---- */

typedef struct trial {
    const hpct_cuda_conv *conv;
    hpct_dnn_way way;
    hpct_cuda_direct direct;
    char *src, *dst;
    float *kernel, *scratch;
} trial;

static hpct_status run_trial(void *argument)
{
    const trial *t = argument;
    hpct_precision type = t->conv->op.build.values;
    switch (t->way) {
    case HPCT_DNN_FORWARD:
        return HPCT_CUDA(
            hpct_cuda_direct_forward(type, &t->direct, t->src, t->kernel, NULL, false, t->dst));
    case HPCT_DNN_DATA:
        return HPCT_CUDA(hpct_cuda_direct_data(type, &t->direct, t->dst, t->kernel, t->src));
    default:
        return HPCT_CUDA(
            hpct_cuda_direct_weights(type, &t->direct, t->src, t->dst, t->kernel, t->scratch));
    }
}

/* *seconds is 0 without memory to measure with. */
static hpct_status measure(const hpct_cuda_conv *conv, hpct_dnn_way way, int n, double *seconds)
{
    const hpct_op *op = &conv->op;
    size_t each = hpct_backend_precision_bytes(op->build.values);
    trial t = {.conv = conv, .way = way, .direct = hpct_cuda_window_direct(&op->spec.window, n)};
    size_t src = hpct_cuda_align_up((size_t) n * hpct_op_src_floats(&op->spec, 0) * each),
           dst = hpct_cuda_align_up(hpct_cuda_dst_count(op, n) * each),
           kernel = hpct_cuda_align_up(op->param_floats[HPCT_OP_KERNEL] * sizeof(float));
    *seconds = 0;
    hpct_cuda_tune_lock();
    t.src = hpct_cuda_tune_memory(src + dst + kernel + hpct_cuda_direct_scratch_bytes(&t.direct));
    t.dst = t.src + src;
    t.kernel = (float *) (void *) (t.dst + dst);
    t.scratch = (float *) (void *) ((char *) t.kernel + kernel);
    hpct_status status = t.src != NULL ? hpct_cuda_tune_time(run_trial, &t, 0, seconds) : HPCT_OK;
    hpct_cuda_tune_release(t.src);
    hpct_cuda_tune_unlock();
    return status;
}

/* ---- what is said ---- */

/* "forward by own kernels (3.1 ms): cuDNN proposes no engine" */
static hpct_status tell_stage(hpct_cuda_conv *conv, hpct_dnn_way way)
{
    const hpct_cuda_conv_stage *s = stage_of(conv, way, 0);
    int n = conv->op.build.batch_sizes[0];
    size_t used = strlen(conv->slow), images = (size_t) n * hpct_op_src_floats(&conv->op.spec, 0);
    double seconds = hpct_cuda_conv_pass_seconds(conv, images, 2);
    bool part = conv->op.spec.window.cells != 0;
    if (s->small || (s->plan != NULL && !s->padded))
        return HPCT_OK;
    if (s->plan == NULL)
        HPCT_TRY(measure(conv, way, n, &seconds));
    snprintf(conv->slow + used, sizeof conv->slow - used, "%s%s %s (%.3g ms): %s",
             used > 0 ? "; " : "", ways[way],
             s->plan == NULL ? "by own kernels" : "with a copy of the pictures and their padding",
             1e3 * seconds, part ? "it is a part of the cells" : s->why);
    return HPCT_OK;
}

hpct_status hpct_cuda_conv_tell_slow(hpct_cuda_conv *conv)
{
    conv->slow[0] = '\0';
    for (int way = 0; way < HPCT_DNN_WAYS; way++) {
        if (is_needed(conv, (hpct_dnn_way) way))
            HPCT_TRY(tell_stage(conv, (hpct_dnn_way) way));
    }
    conv->op.slow = conv->slow[0] != '\0' ? conv->slow : NULL;
    return HPCT_OK;
}

/* "e34, e50, padded e1": forward, and both gradients. */
void hpct_cuda_conv_tell(const hpct_op *op, int batch, char *text, size_t size)
{
    const hpct_cuda_conv *conv = (const hpct_cuda_conv *) op;
    size_t used = 0;
    for (int way = 0; way < HPCT_DNN_WAYS && used < size; way++) {
        const hpct_cuda_conv_stage *s = stage_of(conv, (hpct_dnn_way) way, batch);
        const char *name = s->plan != NULL ? hpct_dnn_name(s->plan)
                           : s->small      ? "own, small windows"
                                           : "own, direct";
        if (!is_needed(conv, (hpct_dnn_way) way))
            continue;
        used += (size_t) snprintf(
            text + used, size - used, "%s%s%.*s", used > 0 ? ", " : "", s->padded ? "padded " : "",
            s->plan != NULL ? (int) strcspn(name, " ") : (int) strlen(name), name);
    }
}
