/* tests/gpu_without/cudnn_accepts/graphs.h - the graphs that models ask cuDNN for on described
 * devices, and its answers. */
#ifndef HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_GRAPHS_H
#define HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_GRAPHS_H

#include "tests/gpu_without/cudnn_accepts/models.h"

#define MOST_ENGINES 96 /* of one graph, or of one line of a table */
#define DEVICES_ALL 9
extern const char *const accepts_devices[DEVICES_ALL + 1]; /* names of fixtures, NULL-terminated */

/* What a graph computes. */
typedef enum accepts_kind {
    ACCEPTS_FORWARD, /* the convolution alone */
    ACCEPTS_FUSED,   /* with bias, ReLU, or both */
    ACCEPTS_SUM,     /* and with another operand added */
    ACCEPTS_DATA,    /* gradient of the source */
    ACCEPTS_ADDED,   /* added to what is there */
    ACCEPTS_WEIGHTS, /* gradient of the kernel */
    ACCEPTS_KINDS
} accepts_kind;
extern const char *const accepts_kind_names[ACCEPTS_KINDS];

/* Numbers of engines, ascending. */
typedef struct accepts_engines {
    int count, number[MOST_ENGINES];
} accepts_engines;
void accepts_engines_add(accepts_engines *engines, int number);

/* cuDNN's answer for one device. */
typedef struct accepts_answer {
    unsigned models; /* a bit for each that asked; 0: nobody did */
    bool accepted;
    accepts_engines engines;  /* those with plans, */
    accepts_engines wrong;    /* but for those known to be wrong for paddings that differ */
    accepts_engines compiled; /* those that would be compiled at run time, which are not used */
    size_t workspace_bytes;   /* of the engine that is proposed first */
} accepts_answer;

typedef struct accepts_graph {
    char *key; /* distinct */
    accepts_kind kind;
    hpct_precision precision;
    bool uneven; /* paddings differ between two ends */
    char shape[160];
    accepts_answer answer[DEVICES_ALL];
} accepts_graph;

/* All graphs so far, in the order of the first question. */
extern accepts_graph *accepts_graphs;
extern int accepts_num_graphs;
void accepts_forget(void);

/* What hpct_dnn_find is asked for from now on is by this model on this device. */
void accepts_listen(int device, int model);

/* Plans a training step of the model for batches of 256 and 17 on the device, which
 * described_gpu_open has opened. HPCT_ERR_CONFIG if the device lacks the precision. */
hpct_status accepts_ask(int device, int model, hpct_precision precision);

/* Whether a refusal leaves a convolution to the direct kernels, which are slow. All others have a
 * way out that is itself a graph here: a fused one the convolution alone, with own kernels after
 * it; paddings that differ a copy of the images that includes them; one that is added a gradient
 * that is separate, and a pass that adds. */
bool accepts_is_last(const accepts_graph *graph);

#endif
