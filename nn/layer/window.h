/* nn/layer/window.h - the sliding window shared by Conv2D and the poolings: checks and output size.
 */
#ifndef HPCT_NN_LAYER_WINDOW_H
#define HPCT_NN_LAYER_WINDOW_H

#include "nn/graph.h"

/* What a user gave; zeros have been replaced by their default. */
typedef struct hpct_window_config {
    const char *what; /* "kernel" or "pool", for messages */
    int size[2], strides[2], dilation[2];
    hpct_padding padding;
    int channels; /* of the output; 0: those of the input */
    int groups;
} hpct_window_config;

/* Whether the input is a picture; fails the model, naming the layer, where it is not. */
bool hpct_window_takes(hpct_model *model, const hpct_shape *input);

/* Fills *window and *output as Keras does: `valid` keeps to windows inside the input, `same` gives
 * ceil(size / stride) outputs with the odd cell of padding at the far end. False, with the model
 * failed and the layer named, when the window does not fit. */
bool hpct_window_make(hpct_model *model, const hpct_shape *input, const hpct_window_config *config,
                      hpct_window *window, hpct_shape *output);

#endif
