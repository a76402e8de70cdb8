/* nn/graph/layer/line.h - given numbers per channel, shared by Normalization and Rescaling. */
#ifndef HPCT_NN_GRAPH_LAYER_LINE_H
#define HPCT_NN_GRAPH_LAYER_LINE_H

#include "nn/graph/graph.h"

/* The node (x - mean) scale + offset. */
typedef struct hpct_layer_given_line {
    double mean, scale, offset;
} hpct_layer_given_line;

/* Adds it, each channel's line made by `make` of the channel's two numbers; fails the model, naming
 * the layer, if they do not fit the channels or are not finite. */
void hpct_layer_line_add(hpct_model *model, const hpct_shape *input, const hpct_per_channel *each,
                         hpct_layer_given_line (*make)(double first, double second));

#endif
