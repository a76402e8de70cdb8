/* nn/file/keras/regularizers.h - regularizers in layer configs: L1, L2 and L1L2 of parameters. */
#ifndef HPCT_NN_FILE_KERAS_REGULARIZERS_H
#define HPCT_NN_FILE_KERAS_REGULARIZERS_H

#include "nn/file/keras/keras.h"

/* Removes every setting "WHAT_regularizer" of a parameter from the config to *kept, a new
 * reference, used after the layer is added. activity_regularizer is none of them. */
void hpct_keras_take_regularizers(hpct_keras_layer *layer, json_t **kept);

/* Sets them for the parameters of the model's last layer; those of absent parameters (an unused
 * bias) are ignored. Releases `kept`. */
void hpct_keras_set_regularizers(hpct_keras_layer *layer, json_t *kept);

/* A parameter's regularizer as Keras writes it: a new reference, NULL if out of memory; *key: its
 * setting. Only for parameters that have one. */
json_t *hpct_keras_regularizer(const hpct_model *model, const hpct_graph_param *param,
                               char key[32]);

#endif
