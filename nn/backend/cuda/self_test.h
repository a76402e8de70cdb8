/* nn/backend/cuda/self_test.h - shows that an engine computes what its graph says, before it is
 * used: on random numbers, some elements of its result are compared with the same ones from own
 * kernels. A graph is a convolution, or a gradient of one, and perhaps a sum, a bias and a ReLU
 * behind it. cuDNN 9.19 has engines that it proposes itself and that are wrong
 * (doc/gpu-results.md). */
#ifndef HPCT_NN_BACKEND_CUDA_SELF_TEST_H
#define HPCT_NN_BACKEND_CUDA_SELF_TEST_H

#include "nn/backend/cuda/dnn_parts.h"

typedef struct hpct_cuda_self_test {
    const hpct_dnn_graph *graph;
    void *result;
    size_t *offset; /* of the samples, */
    float *expected, *worst;
    int samples;
} hpct_cuda_self_test;

/* Bytes of device memory that it takes. */
size_t hpct_cuda_self_test_bytes(const hpct_dnn_graph *graph);

/* Fills the graph's tensors, one pointer for each that is not virtual, with random numbers, and
 * computes what is expected. `memory` is 256-byte aligned, and stays the caller's. */
hpct_status hpct_cuda_self_test_open(hpct_cuda_self_test *test, const hpct_dnn_graph *graph,
                                     void *const *pointers, void *memory);

/* Fills the result anew, calls run(argument), which enqueues the engine, and compares. Synchronous.
 * Fails if run or its work fails. */
hpct_status hpct_cuda_self_test_run(const hpct_cuda_self_test *test,
                                    hpct_status (*run)(void *argument), void *argument,
                                    bool *right);

#endif
