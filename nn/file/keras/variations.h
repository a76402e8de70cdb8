/* nn/file/keras/variations.h - layer classes that change images at random, for the table of layers.
 * Private to nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_VARIATIONS_H
#define HPCT_NN_FILE_KERAS_VARIATIONS_H

#include "nn/file/keras/keras.h"

void hpct_keras_add_random_rotation(hpct_keras_layer *layer);
json_t *hpct_keras_random_rotation_settings(const hpct_layer *layer);
void hpct_keras_add_random_zoom(hpct_keras_layer *layer);
void hpct_keras_add_random_translation(hpct_keras_layer *layer);
/* Of both. */
json_t *hpct_keras_random_sizes_settings(const hpct_layer *layer);
void hpct_keras_add_random_contrast(hpct_keras_layer *layer);
void hpct_keras_add_random_brightness(hpct_keras_layer *layer);
/* Of both. */
json_t *hpct_keras_random_tone_settings(const hpct_layer *layer);

#endif
