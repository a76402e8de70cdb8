/* nn/file/keras/elements.h - elementwise layer classes, for the table of layers. Private to
 * nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_ELEMENTS_H
#define HPCT_NN_FILE_KERAS_ELEMENTS_H

#include "nn/file/keras/keras.h"

void hpct_keras_add_relu(hpct_keras_layer *layer);
json_t *hpct_keras_relu_settings(const hpct_layer *layer);
void hpct_keras_add_leaky_relu(hpct_keras_layer *layer);
json_t *hpct_keras_leaky_relu_settings(const hpct_layer *layer);
void hpct_keras_add_elu(hpct_keras_layer *layer);
json_t *hpct_keras_elu_settings(const hpct_layer *layer);
void hpct_keras_add_prelu(hpct_keras_layer *layer);
json_t *hpct_keras_prelu_settings(const hpct_layer *layer);
void hpct_keras_add_multiply(hpct_keras_layer *layer);
void hpct_keras_add_rescaling(hpct_keras_layer *layer);
json_t *hpct_keras_rescaling_settings(const hpct_layer *layer);
void hpct_keras_add_normalization(hpct_keras_layer *layer);
json_t *hpct_keras_normalization_settings(const hpct_layer *layer);
void hpct_keras_add_dropout(hpct_keras_layer *layer);
json_t *hpct_keras_dropout_settings(const hpct_layer *layer);

/* An operator of Python, as `x + 3.0`: keras.src.ops' Add, Subtract, Multiply and TrueDivide; in
 * Keras 2 a TFOpLambda with TensorFlow's function. NULL for any other. */
typedef void hpct_keras_operation(hpct_keras_layer *layer);
hpct_keras_operation *hpct_keras_find_operation(const json_t *entry);
/* Whether the object is one of keras.src.ops or a TFOpLambda, not a layer. */
bool hpct_keras_is_operation(const json_t *entry);
bool hpct_keras_is_function(const json_t *entry); /* a TFOpLambda */

#endif
