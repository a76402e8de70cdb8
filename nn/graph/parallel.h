/* nn/graph/parallel.h - how operations can be split among shards by channels of the last axis.
 * nn/split/shard.h builds shards from these declarations only. Private to nn/. */
#ifndef HPCT_NN_GRAPH_PARALLEL_H
#define HPCT_NN_GRAPH_PARALLEL_H

#include "nn/graph/op.h"

typedef enum hpct_graph_parallel {
    HPCT_GRAPH_PARALLEL_NONE = 0,        /* needs whole inputs, produces whole outputs */
    HPCT_GRAPH_PARALLEL_BEGINS = 1 << 0, /* can compute some output channels from the whole input */
    HPCT_GRAPH_PARALLEL_FOLLOWS =
        1 << 1, /* an output channel depends on the same input channel only */
    HPCT_GRAPH_PARALLEL_CELLS = 1 << 3, /* can compute some output cells with all channels, if no
                                     gradient of its input is needed */
    HPCT_GRAPH_PARALLEL_SUMS =
        1 << 2, /* from some input channels computes a partial sum, before bias and ReLU */
} hpct_graph_parallel;

/* A bit set. Conv2D without groups begins a split, by cells too for small windows; Dense begins
 * (columns of its kernel) and sums (rows); DepthwiseConv2D, poolings, padding, BatchNormalization
 * over all samples, elementwise activations, Add and image layers follow. Dropout does not: its
 * random numbers count elements of a sample. */
int hpct_op_parallel(const hpct_op_spec *spec);

/* Split of the output of an operation split by cells: all its values count as channels, those of a
 * cell are not divided. Parameters are whole, their gradients partial sums. */
hpct_graph_channel_split hpct_op_cell_split(const hpct_op_spec *spec, int part, int parts);

/* Channels of the output's last axis. */
int hpct_op_channels(const hpct_op_spec *spec);

/* Whether it can process shard `in` of all its inputs: by FOLLOWS, *out is the output's split; by
 * SUMS, *out has no channels. */
bool hpct_op_takes(const hpct_op_spec *spec, const hpct_graph_channel_split *in,
                   hpct_graph_channel_split *out);

/* The operation of one shard: `in` and `out` split its inputs and output if they have channels. A
 * sum loses bias and ReLU. */
hpct_op_spec hpct_op_part(const hpct_op_spec *spec, const hpct_graph_channel_split *in,
                          const hpct_graph_channel_split *out);

/* The values of a parameter in Keras' layout, [outer][split's channels][inner], that a shard has:
 * its channels; all, [outer], without a split. */
typedef struct hpct_graph_param_slice {
    size_t outer, inner;
    hpct_graph_channel_split split;
} hpct_graph_param_slice;

hpct_graph_param_slice hpct_op_slice(const hpct_op_spec *spec, int which,
                                     const hpct_graph_channel_split *in,
                                     const hpct_graph_channel_split *out);

/* Floats of `part`'s slice; copies from (cut) and to (paste) the whole. */
size_t hpct_graph_param_slice_floats(const hpct_graph_param_slice *slice, int part);
void hpct_graph_param_slice_cut(const hpct_graph_param_slice *slice, int part, const float *whole,
                                float *own);
void hpct_graph_param_slice_paste(const hpct_graph_param_slice *slice, int part, const float *own,
                                  float *whole);

#endif
