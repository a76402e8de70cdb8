/* nn/cuda/dnn_graph.h - cuDNN's graph API behind a few calls: describe operations on tensors, get
 * the best way of computing them on this device, execute it. The only file that knows cuDNN's
 * backend descriptors; a further fusion is one more operation here.
 *
 * Pictures and kernels are channels last and dense. Engines are deterministic ones, and sum in
 * fp32. Which of cuDNN's candidates is best is measured once, while a model is built, and kept
 * (nn/cuda/tune.h). */
#ifndef HPCT_NN_CUDA_DNN_GRAPH_H
#define HPCT_NN_CUDA_DNN_GRAPH_H

#include "nn/cuda/cuda.h"

#define HPCT_DNN_MOST_TENSORS 18

/* Operations being described. Errors of the calls that describe are kept; hpct_dnn_find returns the
 * first. */
typedef struct hpct_dnn_graph hpct_dnn_graph;

/* Whether engines are taken that cuDNN compiles, in each run anew. With cuDNN 9.19 and an H100 there are no others for the
 * gradient of a kernel in fp32 from 16 bits, and for moments in bf16. */
bool hpct_dnn_compiles(void);

hpct_status hpct_dnn_graph_new(hpct_dnn_graph **out);
void hpct_dnn_graph_free(hpct_dnn_graph *graph); /* NULL is allowed */

/* A tensor's number. `size`: batch, channels, height, width of pictures; output channels, input
 * channels of one group, height, width of kernels; 1, channels, 1, 1 of vectors. It lies in memory
 * as [size 0][height][width][channels], beginning at a multiple of 16 bytes; one that is `inside`
 * lies nowhere: an operation of the graph makes it and another one takes it. */
int hpct_dnn_tensor(hpct_dnn_graph *graph, cudnnDataType_t type, const int64_t size[4],
                    bool inside);

/* Which of a convolution's three tensors is computed from the other two. */
typedef enum hpct_dnn_way {
    HPCT_DNN_FORWARD,
    HPCT_DNN_DATA,
    HPCT_DNN_WEIGHTS,
    HPCT_DNN_WAYS
} hpct_dnn_way;

/* Height, width. The groups follow from the tensors. */
typedef struct hpct_dnn_window {
    int64_t stride[2], dilation[2], pad_before[2], pad_after[2];
} hpct_dnn_window;

/* Operations, in fp32 (TF32 for fp32 tensors where the library may). src, kernel, dst of the
 * convolution stand for their gradients where those are computed. */
void hpct_dnn_convolution(hpct_dnn_graph *graph, hpct_dnn_way way, const hpct_dnn_window *window,
                          int src, int kernel, int dst);
/* HPCT_DNN_DATA, added to what is there: src += … */
void hpct_dnn_convolution_added(hpct_dnn_graph *graph, const hpct_dnn_window *window, int src,
                                int kernel, int dst);
void hpct_dnn_add(hpct_dnn_graph *graph, int src, int other, int dst); /* other may be a vector */
void hpct_dnn_subtract(hpct_dnn_graph *graph, int src, int other, int dst);
void hpct_dnn_multiply(hpct_dnn_graph *graph, int src, int other, int dst);
void hpct_dnn_relu(hpct_dnn_graph *graph, int src, int dst);
/* diff_src is diff_dst where src is above zero. */
void hpct_dnn_relu_backward(hpct_dnn_graph *graph, int src, int diff_dst, int diff_src);
/* Of each channel of src the sums of its numbers and of their squares, vectors of fp32. */
void hpct_dnn_moments(hpct_dnn_graph *graph, int src, int sum, int squares);
/* Of the gradient behind a normalization of src, vectors of fp32 all: from mean, inverse (of the
 * deviation) and gamma those of gamma and beta; and three that are of no use here. */
typedef struct hpct_dnn_norm_sums {
    int mean, inverse, gamma, diff_gamma, diff_beta, unused[3];
} hpct_dnn_norm_sums;
void hpct_dnn_sum_norm(hpct_dnn_graph *graph, int src, int diff, const hpct_dnn_norm_sums *of);

/* A way of computing a graph, for one operation of a model: graphs of equal description share what
 * is behind it. */
typedef struct hpct_dnn_plan hpct_dnn_plan;

/* *out is NULL, and that is no error, where cuDNN has no such engine for the graph (whose
 * workspace is not too large). The graph is used up, also on failure. */
hpct_status hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph);
void hpct_dnn_plan_free(hpct_dnn_plan *plan); /* NULL is allowed */

/* Before it is executed: cuDNN may have to compile it, which what was only compared with it is
 * spared. *plan may be NULL, and is when what an earlier run found cannot be made any more and
 * there is nothing else. */
hpct_status hpct_dnn_take(hpct_dnn_plan **plan);

size_t hpct_dnn_workspace_bytes(const hpct_dnn_plan *plan); /* once it is taken */
double hpct_dnn_seconds(const hpct_dnn_plan *plan); /* as measured; 0 where that was not possible */

/* Enqueues it. One pointer for each tensor that is not inside, in the order of their numbers. Takes
 * memory of the host only when it has not been called with these pointers before (it remembers the
 * last few). */
hpct_status hpct_dnn_execute(hpct_dnn_plan *plan, void *const *pointers, void *workspace);

#endif
