/* nn/backend/cuda/dnn_graph.h - cuDNN's graph API in a few calls: describe operations on tensors,
 * find the fastest engine for them on this device, execute it. The only interface to cuDNN's
 * backend descriptors; a further fusion is one more operation here, and in hpct_dnn_claim.
 *
 * Images and kernels are channels last and dense. Only deterministic engines with fp32 accumulation
 * are used, after a trial on random numbers (nn/backend/cuda/self_test.h). cuDNN's candidates are
 * tried and timed once, while a model is built, and the result is kept (nn/backend/cuda/tune.h). */
#ifndef HPCT_NN_BACKEND_CUDA_DNN_GRAPH_H
#define HPCT_NN_BACKEND_CUDA_DNN_GRAPH_H

#include "nn/backend/cuda/cuda.h"

#define HPCT_DNN_MOST_TENSORS 18
#define HPCT_DNN_WHY 128 /* bytes of a reason */

/* A graph under construction. Errors of its functions are recorded; hpct_dnn_find returns the
 * first. */
typedef struct hpct_dnn_graph hpct_dnn_graph;

hpct_status hpct_dnn_graph_new(hpct_dnn_graph **out);
void hpct_dnn_graph_free(hpct_dnn_graph *graph); /* NULL is allowed */

/* Adds a tensor and returns its number. `size`: batch, channels, height, width of images; output
 * channels, input channels per group, height, width of kernels; 1, channels, 1, 1 of vectors.
 * Memory layout: [size 0][height][width][channels], 16-byte aligned. `inside`: virtual, produced
 * and consumed by operations of the graph. */
int hpct_dnn_tensor(hpct_dnn_graph *graph, cudnnDataType_t type, const int64_t size[4],
                    bool inside);

/* Which of a convolution's three tensors is computed from the other two. */
typedef enum hpct_dnn_way {
    HPCT_DNN_FORWARD,
    HPCT_DNN_DATA,
    HPCT_DNN_WEIGHTS,
    HPCT_DNN_WAYS
} hpct_dnn_way;

/* Height, width. Groups follow from the tensors. */
typedef struct hpct_dnn_window {
    int64_t stride[2], dilation[2], pad_before[2], pad_after[2];
} hpct_dnn_window;

/* Operations, with fp32 compute type (TF32 for fp32 tensors if permitted). src, kernel, dst of the
 * convolution denote their gradients where those are computed. */
void hpct_dnn_convolution(hpct_dnn_graph *graph, hpct_dnn_way way, const hpct_dnn_window *window,
                          int src, int kernel, int dst);
/* HPCT_DNN_DATA, accumulating: src += ... */
void hpct_dnn_convolution_added(hpct_dnn_graph *graph, const hpct_dnn_window *window, int src,
                                int kernel, int dst);
void hpct_dnn_add(hpct_dnn_graph *graph, int src, int other, int dst); /* other may be a vector */
void hpct_dnn_relu(hpct_dnn_graph *graph, int src, int dst);

/* A way of computing a graph, for one operation of a model; equal graphs share the engine. */
typedef struct hpct_dnn_plan hpct_dnn_plan;

/* *out is NULL, with HPCT_OK, if cuDNN has no suitable engine with an acceptable workspace: `why`
 * then says so. Takes ownership of the graph, also on failure. */
hpct_status hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char why[HPCT_DNN_WHY]);
void hpct_dnn_plan_free(hpct_dnn_plan *plan); /* NULL is allowed */

/* Must be called before execution: makes the plan; choices of earlier runs that are only
 * compared need no plan. *plan may be NULL; it becomes NULL if the
 * choice of an earlier run cannot be made any more and there is no other. */
hpct_status hpct_dnn_take(hpct_dnn_plan **plan);

/* The engine's name: "e12 k2=1 k5=3". */
const char *hpct_dnn_name(const hpct_dnn_plan *plan);
size_t hpct_dnn_workspace_bytes(const hpct_dnn_plan *plan); /* after hpct_dnn_take */
double hpct_dnn_seconds(const hpct_dnn_plan *plan);         /* as measured; 0 if not available */

/* Enqueues it. One pointer per non-virtual tensor, in the order of their numbers. Allocates host
 * memory only for pointers not used in its last few calls. */
hpct_status hpct_dnn_execute(hpct_dnn_plan *plan, void *const *pointers, void *workspace);

#endif
