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

/* A parameter's initializer as Keras writes it; a new reference, NULL if out of memory. */
json_t *hpct_keras_initializer(const hpct_param *param);

#endif
