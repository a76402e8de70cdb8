/* nn/graph/layer/window.h - layers of images: the sliding window shared by Conv2D and the poolings,
 * its checks and output size; what layers that change images share.
 */
#ifndef HPCT_NN_GRAPH_LAYER_WINDOW_H
#define HPCT_NN_GRAPH_LAYER_WINDOW_H

#include "nn/graph/graph.h"

/* The user's settings, with defaults resolved. */
typedef struct hpct_layer_window_config {
    const char *what; /* "kernel" or "pool", for messages */
    int size[2], strides[2], dilation[2];
    hpct_padding padding;
    int channels; /* of the output; 0: those of the input */
    int groups;
} hpct_layer_window_config;

/* Whether the input is an image (rank 3); else fails the model, naming the layer. */
bool hpct_layer_window_takes(hpct_model *model, const hpct_shape *input);

/* Begins a layer that changes images, and fills their sizes, the output's as the input's; false if
 * the model has failed. */
bool hpct_layer_begin_picture(hpct_model *model, const char *type, const char *stem,
                              hpct_graph_picture *picture);
void hpct_layer_add_picture(hpct_model *model, hpct_op_kind kind,
                            const hpct_graph_picture *picture);
/* The same for an output of this size, which is checked. */
void hpct_layer_add_picture_of(hpct_model *model, hpct_op_kind kind, int height, int width,
                               hpct_graph_picture *picture);

/* Fills *window and *output as Keras does: `valid` uses only windows inside the input, `same` gives
 * ceil(size / stride) outputs, an odd cell of padding at the end. Returns false and fails the
 * model, naming the layer, if the window does not fit. */
bool hpct_layer_window_make(hpct_model *model, const hpct_shape *input,
                            const hpct_layer_window_config *config, hpct_graph_window *window,
                            hpct_shape *output);

#endif
