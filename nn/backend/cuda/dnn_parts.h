/* nn/backend/cuda/dnn_parts.h - shared by the implementation of nn/backend/cuda/dnn_graph.h. */
#ifndef HPCT_NN_BACKEND_CUDA_DNN_PARTS_H
#define HPCT_NN_BACKEND_CUDA_DNN_PARTS_H

#include "nn/backend/cuda/dnn_graph.h"

#define HPCT_DNN_MOST_DESCRIPTORS 36 /* per graph */
#define HPCT_DNN_MOST_OPERATIONS 8
#define HPCT_DNN_KEY_SIZE 1280
#define HPCT_DNN_NAME_SIZE 768
#define HPCT_DNN_ALIGNMENT 16 /* bytes, of every tensor */

typedef cudnnBackendDescriptor_t hpct_dnn_descriptor;

/* What a graph computes: one convolution, and what may follow it. Numbers of tensors, -1 where
 * there is none. */
typedef struct hpct_dnn_claim {
    bool whole; /* this is all of it */
    hpct_dnn_way way;
    hpct_dnn_window window;
    int src, kernel, dst, result, other, bias;
    bool added, relu;
} hpct_dnn_claim;

struct hpct_dnn_graph {
    hpct_dnn_descriptor made[HPCT_DNN_MOST_DESCRIPTORS];
    int num_made;
    hpct_dnn_descriptor operations[HPCT_DNN_MOST_OPERATIONS];
    int num_operations;
    hpct_dnn_descriptor tensors[HPCT_DNN_MOST_TENSORS];
    bool inside[HPCT_DNN_MOST_TENSORS];
    size_t bytes[HPCT_DNN_MOST_TENSORS];
    int64_t size[HPCT_DNN_MOST_TENSORS][4];
    cudnnDataType_t type[HPCT_DNN_MOST_TENSORS];
    int num_tensors;
    hpct_dnn_claim claim;
    hpct_dnn_descriptor graph;
    char key[HPCT_DNN_KEY_SIZE];
    size_t key_length;
    hpct_status status;
    bool refused; /* cuDNN does not support the operation or graph */
};

/* Creates the operation graph descriptor, after the last operation. */
void hpct_dnn_graph_finish(hpct_dnn_graph *graph);

/* Returns the number of non-virtual tensors and their cuDNN unique ids (index + 1). */
int hpct_dnn_graph_numbers(const hpct_dnn_graph *graph, int64_t *numbers);

/* An engine configuration and its plan. */
typedef struct hpct_dnn_candidate {
    hpct_dnn_descriptor config, plan;
    char name[HPCT_DNN_NAME_SIZE];
    size_t workspace_bytes;
    double seconds; /* if measured */
} hpct_dnn_candidate;

/* Adds configurations proposed by a heuristic until there are `most`, the first half from distinct
 * engines: distinct, exact, and with a plan whose workspace is within the limit. */
void hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                      size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);

/* Makes the candidate with that name; false, with nothing to drop, if impossible. */
bool hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name, size_t workspace_limit,
                             hpct_dnn_candidate *out);
void hpct_dnn_candidate_drop(hpct_dnn_candidate *c);

/* Checks cuDNN calls that may fail, which only means one candidate less. Errors other than
 * NOT_SUPPORTED are counted in hpct_dnn_troubles. */
bool hpct_dnn_worked(cudnnStatus_t error);
extern _Thread_local int hpct_dnn_troubles;

static inline bool hpct_dnn_create(cudnnBackendDescriptorType_t type, hpct_dnn_descriptor *out)
{
    *out = NULL;
    return hpct_dnn_worked(cudnnBackendCreateDescriptor(type, out));
}

static inline bool hpct_dnn_set(hpct_dnn_descriptor of, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    return hpct_dnn_worked(cudnnBackendSetAttribute(of, name, type, count, values));
}

/* *count: values that it has, of which at most `most` are stored. */
static inline bool hpct_dnn_get(hpct_dnn_descriptor of, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, int64_t most, int64_t *count,
                                void *values)
{
    return hpct_dnn_worked(cudnnBackendGetAttribute(of, name, type, most, count, values));
}

static inline bool hpct_dnn_finalize(hpct_dnn_descriptor descriptor)
{
    return hpct_dnn_worked(cudnnBackendFinalize(descriptor));
}

/* Entries may be NULL, and become NULL. */
void hpct_dnn_destroy_all(hpct_dnn_descriptor *descriptors, int count);

#endif
