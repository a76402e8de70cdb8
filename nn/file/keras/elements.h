/* nn/file/keras/elements.h - settings of elementwise layers, for the table of layers, and operators
 * as layers. Private to nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_ELEMENTS_H
#define HPCT_NN_FILE_KERAS_ELEMENTS_H

#include "nn/file/keras/fields.h"

extern const hpct_keras_special hpct_keras_slope;             /* double */
extern const hpct_keras_special hpct_keras_shared_axes;       /* bool, of PReLU */
extern const hpct_keras_special hpct_keras_scale_and_offset;  /* hpct_layer_rescaling */
extern const hpct_keras_special hpct_keras_mean_and_variance; /* hpct_per_channel */
extern const hpct_keras_special hpct_keras_noise_shape;       /* bool: one draw per sample */

/* An operator of Python, as `x + 3.0`: keras.src.ops' Add, Subtract, Multiply and TrueDivide; in
 * Keras 2 a TFOpLambda with TensorFlow's function. NULL for any other. */
typedef void hpct_keras_operation(hpct_keras_layer *layer);
hpct_keras_operation *hpct_keras_find_operation(const json_t *entry);
/* Whether the object is one of keras.src.ops or a TFOpLambda, not a layer. */
bool hpct_keras_is_operation(const json_t *entry);
bool hpct_keras_is_function(const json_t *entry); /* a TFOpLambda */

#endif
