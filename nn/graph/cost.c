/* FLOPs and bytes of operations. */
#include "nn/graph/cost.h"

double hpct_op_flops(const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    if (spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_CONV2D_TRANSPOSE)
        return 2.0 * hpct_graph_window_cells(w) * w->out_c * w->kernel_h * w->kernel_w *
               (w->in_c / w->groups);
    if (spec->kind == HPCT_OP_DENSE)
        return 2.0 * spec->dense.rows * spec->dense.in * spec->dense.out;
    return 0;
}

static double param_floats(const hpct_op *op)
{
    double floats = 0;
    for (int i = 0; i < op->num_params; i++)
        floats += (double) op->param_floats[i];
    return floats;
}

hpct_graph_cost hpct_graph_cost_forward(const hpct_op *op, int n, size_t in, size_t out)
{
    double floats = (double) n * (double) (in + out) + param_floats(op);
    return (hpct_graph_cost){.flops = n * hpct_op_flops(&op->spec),
                             .bytes = sizeof(float) * floats};
}

hpct_graph_cost hpct_graph_cost_backward(const hpct_op *op, int n, size_t in, size_t out)
{
    bool diff_src = op->build.needs_diff_src;
    int gradients = (op->num_params > 0) + diff_src;
    double floats = (double) n * (double) out; /* diff_dst */
    floats += op->backward_reads_dst ? (double) n * (double) out : 0;
    floats += op->backward_reads_src ? (double) n * (double) in : 0;
    floats += diff_src ? (double) n * (double) in + param_floats(op) : 0;
    for (int i = 0; i < op->num_params; i++) /* the gradient written, or the parameter updated */
        floats += (double) op->param_floats[i] * (i == HPCT_OP_KERNEL && op->kernel_fused ? 2 : 1);
    return (hpct_graph_cost){.flops = n * gradients * hpct_op_flops(&op->spec),
                             .bytes = sizeof(float) * floats};
}
