/* nn/cuda/dnn_parts.h - what the files behind nn/cuda/dnn_graph.h share. */
#ifndef HPCT_NN_CUDA_DNN_PARTS_H
#define HPCT_NN_CUDA_DNN_PARTS_H

#include "nn/cuda/dnn_graph.h"

#define HPCT_DNN_MOST_DESCRIPTORS 36 /* of a graph */
#define HPCT_DNN_MOST_OPERATIONS 8
#define HPCT_DNN_KEY_SIZE 1280
#define HPCT_DNN_NAME_SIZE 768
#define HPCT_DNN_ALIGNMENT 16 /* bytes, of every tensor */

typedef cudnnBackendDescriptor_t hpct_dnn_descriptor;

struct hpct_dnn_graph {
    hpct_dnn_descriptor made[HPCT_DNN_MOST_DESCRIPTORS];
    int num_made;
    hpct_dnn_descriptor operations[HPCT_DNN_MOST_OPERATIONS];
    int num_operations;
    hpct_dnn_descriptor tensors[HPCT_DNN_MOST_TENSORS];
    bool inside[HPCT_DNN_MOST_TENSORS];
    size_t bytes[HPCT_DNN_MOST_TENSORS];
    int num_tensors;
    hpct_dnn_descriptor graph;
    char key[HPCT_DNN_KEY_SIZE];
    size_t key_length;
    hpct_status status;
    bool refused; /* by cuDNN, which knows no such operation or graph */
};

/* The graph's own descriptor, after its last operation. */
void hpct_dnn_graph_finish(hpct_dnn_graph *graph);

/* The numbers (cuDNN's unique ids, index + 1) of the tensors that are not inside; how many. */
int hpct_dnn_graph_numbers(const hpct_dnn_graph *graph, int64_t *numbers);

/* A way of computing a graph. */
typedef struct hpct_dnn_candidate {
    hpct_dnn_descriptor config, plan;
    char name[HPCT_DNN_NAME_SIZE];
    size_t workspace_bytes;
    double seconds; /* once measured */
} hpct_dnn_candidate;

/* Adds what a heuristic proposes until there are `most`, half of them the first ones of different
 * engines: each other than those before it, exact, and with a plan whose workspace is within the
 * limit. Few that are compiled. */
void hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                      size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);

/* The candidate of that name; false, and nothing to drop, where it cannot be made. */
bool hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name, size_t workspace_limit,
                             hpct_dnn_candidate *out);
void hpct_dnn_candidate_drop(hpct_dnn_candidate *c);

/* Calls of cuDNN that may fail: then there is one candidate less. What fails for another reason
 * than that cuDNN has no such thing is counted. */
bool hpct_dnn_worked(cudnnStatus_t error);
extern _Thread_local int hpct_dnn_troubles;

static inline bool hpct_dnn_create(cudnnBackendDescriptorType_t type, hpct_dnn_descriptor *out)
{
    *out = NULL;
    return hpct_dnn_worked(cudnnBackendCreateDescriptor(type, out));
}

/* Each may be NULL, and is NULL after it. */
void hpct_dnn_destroy_all(hpct_dnn_descriptor *descriptors, int count);

#endif
