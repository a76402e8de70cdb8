/* nn/graph/cost.h - minimal cost of an operation: FLOPs, and memory read and written once. Private
 * to nn/. */
#ifndef HPCT_NN_GRAPH_COST_H
#define HPCT_NN_GRAPH_COST_H

#include "nn/graph/op.h"

typedef struct hpct_graph_cost {
    double flops; /* multiplications and additions of convolutions and matrix products */
    double bytes;
} hpct_graph_cost;

/* Forward FLOPs of one sample; 0 for memory-bound operations. Each of the two gradients takes as
 * many. */
double hpct_op_flops(const hpct_op_spec *spec);

/* n samples through `op`; `in` and `out` are the floats of one sample, all inputs together. */
hpct_graph_cost hpct_graph_cost_forward(const hpct_op *op, int n, size_t in, size_t out);
hpct_graph_cost hpct_graph_cost_backward(const hpct_op *op, int n, size_t in, size_t out);

#endif
