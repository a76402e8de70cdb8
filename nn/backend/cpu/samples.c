/* Permute and GaussianNoise: the reference's loops, with the samples divided among threads. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/ref/kernels.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    const hpct_op *op;
    const hpct_op_call *call;
    size_t size; /* floats of a sample */
} job;

static void permute_forward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_backend_permute permute = hpct_backend_permute_make(&j->op->spec, false);
    hpct_ref_permute(&permute, count * j->size, j->call->src[0] + first * j->size, false,
                     j->call->dst + first * j->size);
}

static void permute_backward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_backend_permute permute = hpct_backend_permute_make(&j->op->spec, true);
    hpct_ref_permute(&permute, count * j->size, j->call->diff_dst + first * j->size,
                     j->call->add[0], j->call->diff_src[0] + first * j->size);
}

static void noise_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_graph_draw draw = hpct_op_draw(j->op, j->call);
    hpct_ref_gaussian_noise(&draw, j->op->spec.rate,
                            (int) (j->call->first_sample + (int64_t) first), (int) count, j->size,
                            j->call->src[0] + first * j->size, j->call->dst + first * j->size);
}

static void each_sample(const hpct_op *op, const hpct_op_call *call,
                        void (*body)(size_t first, size_t count, void *arg))
{
    job j = {op, call, hpct_op_dst_floats(&op->spec)};
    hpct_cpu_loops_split((size_t) call->n, 1, body, &j);
}

static hpct_status permute_forward(hpct_op *op, const hpct_op_call *call)
{
    each_sample(op, call, permute_forward_samples);
    return HPCT_OK;
}

static hpct_status permute_backward(hpct_op *op, const hpct_op_call *call)
{
    if (call->diff_src[0] != NULL)
        each_sample(op, call, permute_backward_samples);
    return HPCT_OK;
}

static hpct_status noise_forward(hpct_op *op, const hpct_op_call *call)
{
    size_t bytes = (size_t) call->n * hpct_op_dst_floats(&op->spec) * sizeof(float);
    if (call->training)
        each_sample(op, call, noise_samples);
    else
        memcpy(call->dst, call->src[0], bytes);
    return HPCT_OK;
}

static hpct_status noise_backward(hpct_op *op, const hpct_op_call *call)
{
    size_t count = (size_t) call->n * hpct_op_dst_floats(&op->spec);
    float *diff_src = call->diff_src[0];
    if (diff_src != NULL && call->add[0])
        hpct_cpu_loops_best()->add(count, call->diff_dst, diff_src);
    else if (diff_src != NULL && diff_src != call->diff_dst)
        memcpy(diff_src, call->diff_dst, count * sizeof *diff_src);
    return HPCT_OK;
}

const hpct_op_class hpct_cpu_permute = {
    .forward = permute_forward, .backward = permute_backward, .destroy = hpct_op_free};

const hpct_op_class hpct_cpu_gaussian_noise = {
    .forward = noise_forward, .backward = noise_backward, .destroy = hpct_op_free};
