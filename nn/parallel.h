/* nn/parallel.h - how each operation can be split among the parts of a model, by the channels of
 * its last axis. The only place that says so: nn/shard.h makes models of parts from these
 * declarations and knows no layer itself. Private to nn/. */
#ifndef HPCT_NN_PARALLEL_H
#define HPCT_NN_PARALLEL_H

#include "nn/op.h"

typedef enum hpct_parallel {
    HPCT_PARALLEL_NONE = 0,         /* needs all of its inputs and gives all of its output */
    HPCT_PARALLEL_BEGINS = 1 << 0,  /* can give some output channels alone, from all of its input */
    HPCT_PARALLEL_FOLLOWS = 1 << 1, /* an output channel needs the same input channel only */
    HPCT_PARALLEL_CELLS = 1 << 3,   /* can give some output cells alone, all channels of each: where
                                       nobody wants the gradient of its input */
    HPCT_PARALLEL_SUMS = 1 << 2,    /* from some input channels gives a part of a sum that is linear
                                       in them, to which bias and ReLU come after */
} hpct_parallel;

/* An or of these. Conv2D without groups begins, by cells too where its window is small; a Dense
 * begins (by columns of its kernel) and sums (by rows); DepthwiseConv2D, poolings, padding,
 * BatchNormalization over all samples, activations of single elements, Add and pictures' layers
 * follow. Dropout does not: its random numbers count a sample's elements. */
int hpct_op_parallel(const hpct_op_spec *spec);

/* Of the output of an operation that gives cells: all its numbers as channels, those of a cell
 * staying together. Parameters are whole then, and their gradients parts of a sum. */
hpct_channel_split hpct_op_cell_split(const hpct_op_spec *spec, int part, int parts);

/* Channels of the last axis of what it gives. */
int hpct_op_channels(const hpct_op_spec *spec);

/* Whether it can work on the part `in` of the channels of all of its inputs: by FOLLOWS, *out is
 * how its output is split then; by SUMS, *out has no channels. */
bool hpct_op_takes(const hpct_op_spec *spec, const hpct_channel_split *in, hpct_channel_split *out);

/* The operation of one part: `in` and `out` split its inputs and output where they have channels.
 * A sum loses bias and ReLU. */
hpct_op_spec hpct_op_part(const hpct_op_spec *spec, const hpct_channel_split *in,
                          const hpct_channel_split *out);

/* Which numbers of a parameter in Keras' layout a part has: of [outer][split's channels][inner] its
 * channels; all of `outer` numbers where the split has none. */
typedef struct hpct_param_slice {
    size_t outer, inner;
    hpct_channel_split split;
} hpct_param_slice;

hpct_param_slice hpct_op_slice(const hpct_op_spec *spec, int which, const hpct_channel_split *in,
                               const hpct_channel_split *out);

/* Numbers of `part`'s slice; copies between it and the whole. */
size_t hpct_param_slice_floats(const hpct_param_slice *slice, int part);
void hpct_param_slice_cut(const hpct_param_slice *slice, int part, const float *whole, float *own);
void hpct_param_slice_paste(const hpct_param_slice *slice, int part, const float *own,
                            float *whole);

#endif
