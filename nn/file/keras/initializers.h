/* nn/file/keras/initializers.h - initializers in layer configs. */
#ifndef HPCT_NN_FILE_KERAS_INITIALIZERS_H
#define HPCT_NN_FILE_KERAS_INITIALIZERS_H

#include "nn/file/keras/keras.h"

/* Removes every setting "WHAT_initializer" from the config to *kept, a new reference, used after
 * the layer is added. */
void hpct_keras_take_initializers(hpct_keras_layer *layer, json_t **kept);

/* Sets them for the parameters of the model's last layer; those of absent parameters (an unused
 * bias) are ignored. Releases `kept`. */
void hpct_keras_set_initializers(hpct_keras_layer *layer, json_t *kept);

/* Length of the part of a parameter's name that its initializer's key begins with: the kernels of
 * SeparableConv2D, "depthwise_kernel", have "depthwise_initializer". */
int hpct_keras_initialized(const char *what);

/* A parameter's initializer as Keras writes it; a new reference, NULL if out of memory. */
json_t *hpct_keras_initializer(const hpct_graph_param *param);

#endif
