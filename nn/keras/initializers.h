/* nn/keras/initializers.h - the initializers that a layer's config names, for its parameters. */
#ifndef HPCT_NN_KERAS_INITIALIZERS_H
#define HPCT_NN_KERAS_INITIALIZERS_H

#include "nn/keras/keras.h"

/* Takes every setting "WHAT_initializer" out of the config; they are kept in *kept, a new
 * reference, until the layer is there. */
void hpct_keras_take_initializers(hpct_keras_layer *layer, json_t **kept);

/* Sets them in the parameters of the model's last layer; the one of a parameter that the layer does
 * not have (a bias that is not used) means nothing. Releases `kept`. */
void hpct_keras_set_initializers(hpct_keras_layer *layer, json_t *kept);

/* The initializer of one parameter as Keras writes it; a new reference, NULL when out of memory. */
json_t *hpct_keras_initializer(const hpct_param *param);

#endif
