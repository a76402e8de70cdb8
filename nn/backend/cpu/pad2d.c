/* ZeroPadding2D that is not fused to the operation after it: copies, per sample or per channel
 * block. */
#include "nn/backend/cpu/cpu.h"

#include "base/status.h"
#include "nn/backend/cpu/loops.h"
#include "nn/backend/ref/kernels.h"

#include <stdlib.h>

typedef struct job {
    hpct_graph_window window; /* of one sample, or of one channel block */
    size_t count;             /* number of these */
    const hpct_op_call *call;
} job;

static job job_of(const hpct_op *op, const hpct_op_call *call)
{
    job j = {.window = op->spec.window, .count = (size_t) call->n, .call = call};
    if (op->spec.src_blocks || op->spec.dst_blocks) {
        j.count *= (size_t) (j.window.in_c / HPCT_GRAPH_CHANNEL_BLOCK);
        j.window.in_c = j.window.out_c = HPCT_GRAPH_CHANNEL_BLOCK;
    }
    return j;
}

static size_t src_floats(const job *j)
{
    return (size_t) j->window.in_h * (size_t) j->window.in_w * (size_t) j->window.in_c;
}

static size_t dst_floats(const job *j)
{
    return (size_t) j->window.out_h * (size_t) j->window.out_w * (size_t) j->window.out_c;
}

static void forward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_ref_pad2d_forward(&j->window, (int) count, j->call->src[0] + first * src_floats(j),
                           j->call->dst + first * dst_floats(j));
}

static void backward_samples(size_t first, size_t count, void *arg)
{
    const job *j = arg;
    hpct_ref_pad2d_backward(&j->window, (int) count, j->call->diff_dst + first * dst_floats(j),
                            j->call->add[0], j->call->diff_src[0] + first * src_floats(j));
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    hpct_cpu_loops_split(j.count, 1, forward_samples, &j);
    return HPCT_OK;
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    job j = job_of(op, call);
    if (call->diff_src[0] != NULL)
        hpct_cpu_loops_split(j.count, 1, backward_samples, &j);
    return HPCT_OK;
}

const hpct_op_class hpct_cpu_pad2d = {
    .forward = forward, .backward = backward, .destroy = hpct_op_free};
