/* nn/file/layers.h - a model's layers with all their settings, as JSON, to compare two models. */
#ifndef HPCT_NN_FILE_LAYERS_H
#define HPCT_NN_FILE_LAYERS_H

#include <hpctrain/model.h>
#include <jansson.h>

/* A list: the input's shape, then of each layer its "name", "class", "reads" (names of layers) and
 * Keras' settings of that class. Without what does not change the computed function or has a place
 * of its own: initializers, regularizers, trainable, precision. NULL if out of memory. */
json_t *hpct_model_describe_layers(const hpct_model *model);

#endif
