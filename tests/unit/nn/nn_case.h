/* tests/unit/nn/nn_case.h - one operation with random numbers, carried out by any backend: the unit
 * tests compare the results, tests/bench/ops times the same code. */
#ifndef HPCT_TESTS_UNIT_NN_NN_CASE_H
#define HPCT_TESTS_UNIT_NN_NN_CASE_H

#include "nn/backend/backend.h"

#include <stdlib.h>

typedef struct nn_case {
    hpct_op_spec spec;
    hpct_precision precision;
    hpct_precision
        values; /* of inputs and results in a backend that has low_values; all are rounded to it */
    int n;
    int other_n; /* also built for this batch size; 0 for none */
    bool needs_diff_src, fuse_update, plain_layout;
    bool inference; /* forward, and the backward after it, without `training` */
    bool forward_only;
    bool add; /* the sources' gradients are added to what is there */
    bool adds, adds_relu, leaves_bias, shares_src; /* CONV2D: as in hpct_op_build */
    int small_integers; /* not 0: inputs are whole numbers below it, so that there are ties */
} nn_case;

/* Whether all its pictures can have their channels in blocks; spec.src_blocks and dst_blocks then
 * ask a backend that knows them, and the numbers that go in and come out are the same. */
bool nn_case_can_be_blocks(const nn_case *c);

/* What one backend made of it, on the host, kernels in Keras' layout. */
typedef struct nn_result {
    size_t src_count[HPCT_GRAPH_NODE_MAX_INPUTS], dst_count, param_count[HPCT_OP_MAX_PARAMS];
    int num_inputs, num_params;
    hpct_precision precision; /* that it was computed in */
    float *dst, *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS];
    float *grad[HPCT_OP_MAX_PARAMS], *param[HPCT_OP_MAX_PARAMS]; /* states have no grad */
    bool added;                                                  /* backward, to a diff_src */
    bool broke_promise; /* changed diff_dst though it said that it keeps it */
    bool wrote_behind;  /* the workspace, scratch or copies that it had asked for */
    size_t bad_padding; /* numbers in the arenas that should be zero or were never written */
    double forward_seconds, backward_seconds; /* the shortest of all repetitions */
} nn_result;

/* Inputs depend on `seed` alone. All that the operation has to write is NaN before. Backward starts
 * from `given_dst` where that is not NULL, so that results near zero fall on the same side of a
 * ReLU for every backend. Forward and backward run `repeat` times. NULL, and hpct_last_error, on
 * failure. */
nn_result *nn_case_run(const nn_case *c, const hpct_backend *backend, uint64_t seed,
                       const float *given_dst, int repeat);
void nn_result_free(nn_result *result);

/* Largest |a - b| over largest |b|; infinite where a is not a number. */
double nn_difference(const float *a, const float *b, size_t count);

/* A Conv2D or MaxPool2D window over h x w x c; `same` is Keras' padding. */
hpct_graph_window nn_window(const int in[3], int out_c, const int kernel[2], const int strides[2],
                            bool same);
hpct_graph_window nn_dilated_window(const int in[3], int out_c, const int kernel[2],
                                    const int strides[2], const int dilation[2], int groups,
                                    bool same);

/* How many of so many random cases are tried: of a GPU's kernels on the host, where each thread of
 * a block is a fiber, a quarter, and all in check-long. */
static inline int nn_cases(int usually)
{
#ifdef NN_OPS_ON_HOST
    return getenv("HPC_TRAIN_LONG") == NULL ? (usually + 3) / 4 : usually;
#else
    return usually;
#endif
}

#endif
