/* Small-window convolutions by own kernels (small_kernels.cu), if these were measured to be faster
 * than cuDNN's engines with their extra passes. */
#include "nn/backend/cuda/conv2d_parts.h"

#include "base/status.h"
#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/tune.h"
#include "nn/backend/cuda/window.h"
#include "nn/backend/without.h"

#include <stdio.h>
#include <stdlib.h>

/* Version of these kernels, part of the key of kept times: increase with each change. */
#define KERNELS 1

/* Forward: without fused ADD. Backward: kernel gradient including the ReLU's and bias'
 * backward, if no gradient of the source is needed. */
static bool is_small(const hpct_cuda_conv *conv, int n, bool backward)
{
    const hpct_op_build *build = &conv->op.build;
    hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, n);
    if (hpct_backend_without(HPCT_BACKEND_WITHOUT_SMALL) || !hpct_cuda_small_fits(&direct))
        return false;
    return backward ? build->training && !build->needs_diff_src : !build->adds;
}

/* ---- execution ---- */

typedef struct small_call {
    const hpct_cuda_conv *conv;
    int n;
    bool backward;
    const void *src;
    void *dst, *diff_dst;
    const float *kernel, *bias;
    float *diff_kernel, *diff_bias, *scratch;
} small_call;

static hpct_status make(const small_call *c)
{
    const hpct_op *op = &c->conv->op;
    hpct_cuda_direct direct = hpct_cuda_window_direct(&c->conv->op.spec.window, c->n);
    hpct_precision type = op->build.values;
    cudaError_t error =
        c->backward
            ? hpct_cuda_launch_small_backward(type, &direct, c->src, op->spec.relu ? c->dst : NULL,
                                              c->diff_dst, c->diff_kernel, c->diff_bias, c->scratch)
            : hpct_cuda_launch_small_forward(type, &direct, c->src, c->kernel, c->bias,
                                             op->spec.relu, c->dst);
    return hpct_cuda_launched(error, op, c->backward ? "backward" : "forward");
}

hpct_status hpct_cuda_conv_small_forward(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    small_call c = {.conv = conv,
                    .n = call->n,
                    .src = call->src[0],
                    .dst = call->dst,
                    .kernel = call->param[HPCT_OP_KERNEL],
                    .bias = hpct_cuda_conv_has_bias(conv) ? call->param[HPCT_OP_BIAS] : NULL};
    return make(&c);
}

hpct_status hpct_cuda_conv_small_backward(const hpct_cuda_conv *conv, const hpct_op_call *call)
{
    small_call c = {.conv = conv,
                    .n = call->n,
                    .backward = true,
                    .src = call->src[0],
                    .dst = call->dst,
                    .diff_dst = call->diff_dst,
                    .diff_kernel = call->grad[HPCT_OP_KERNEL],
                    .scratch = hpct_cuda_conv_workspace(conv, call)};
    if (hpct_cuda_conv_has_bias(conv))
        c.diff_bias = call->grad[HPCT_OP_BIAS];
    return make(&c);
}

/* ---- measurement ---- */

static hpct_status run_trial(void *argument)
{
    return make(argument);
}

/* On separate buffers; *seconds is 0 without memory for them. */
static hpct_status measure(const hpct_cuda_conv *conv, int n, bool backward, double *seconds)
{
    const hpct_op_spec *spec = &conv->op.spec;
    hpct_cuda_direct direct = hpct_cuda_window_direct(&conv->op.spec.window, n);
    size_t each = hpct_backend_precision_bytes(conv->op.build.values);
    size_t result = hpct_cuda_align_up(hpct_cuda_dst_count(&conv->op, n) * each);
    size_t bytes[] = {hpct_cuda_align_up((size_t) n * hpct_op_src_floats(spec, 0) * each),
                      result,
                      backward ? result : 0,
                      hpct_cuda_align_up(conv->op.param_floats[HPCT_OP_KERNEL] * sizeof(float)),
                      hpct_cuda_align_up(conv->op.param_floats[HPCT_OP_BIAS] * sizeof(float)),
                      backward ? hpct_cuda_small_scratch_bytes(&direct) : 0};
    char *at[sizeof bytes / sizeof *bytes];
    size_t all = 0, num = sizeof bytes / sizeof *bytes;
    for (size_t i = 0; i < num; i++)
        all += bytes[i];
    char *memory = hpct_cuda_tune_memory(all);
    *seconds = 0;
    if (memory == NULL)
        return HPCT_OK;
    at[0] = memory;
    for (size_t i = 1; i < num; i++)
        at[i] = at[i - 1] + bytes[i - 1];
    float *kernel = (float *) at[3], *bias = hpct_cuda_conv_has_bias(conv) ? (float *) at[4] : NULL;
    small_call trial = {.conv = conv,
                        .n = n,
                        .backward = backward,
                        .src = at[0],
                        .dst = at[1],
                        .diff_dst = at[2],
                        .kernel = kernel,
                        .bias = bias,
                        .diff_kernel = kernel,
                        .diff_bias = bias,
                        .scratch = (float *) at[5]};
    hpct_status status = hpct_cuda_tune_time(run_trial, &trial, 0, seconds);
    hpct_cuda_tune_release(memory);
    return status;
}

/* Measured now or in an earlier run. */
static hpct_status find_seconds(const hpct_cuda_conv *conv, int n, bool backward, double *seconds)
{
    hpct_cuda_choices *choices = NULL;
    char what[192], key[256], value[32];
    *seconds = 0;
    hpct_cuda_conv_say(conv, n, what, sizeof what);
    snprintf(key, sizeof key, "small %d %s %s", KERNELS, backward ? "backward" : "forward", what);
    hpct_cuda_tune_lock();
    hpct_status status = hpct_cuda_tune_choices(&choices);
    const char *kept = status == HPCT_OK ? hpct_cuda_choices_find(choices, key) : NULL;
    if (kept != NULL) {
        *seconds = 1e-9 * strtod(kept, NULL);
    } else if (status == HPCT_OK) {
        status = measure(conv, n, backward, seconds);
        snprintf(value, sizeof value, "%.0f", 1e9 * *seconds);
        if (status == HPCT_OK && *seconds > 0)
            status = hpct_cuda_choices_keep(choices, key, value);
    }
    hpct_cuda_tune_unlock();
    return status;
}

hpct_status hpct_cuda_conv_take_small(const hpct_cuda_conv *conv, int n, bool backward,
                                      double besides, hpct_cuda_conv_stage *s)
{
    double seconds = 0, others = s->plan != NULL ? hpct_dnn_seconds(s->plan) : 0;
    if (!is_small(conv, n, backward))
        return HPCT_OK;
    HPCT_TRY(s->plan != NULL ? find_seconds(conv, n, backward, &seconds) : HPCT_OK);
    if (s->plan != NULL && !(seconds > 0 && others > 0 && seconds < others + besides))
        return HPCT_OK;
    hpct_dnn_plan_free(s->plan);
    *s = (hpct_cuda_conv_stage){.small = true};
    return HPCT_OK;
}
