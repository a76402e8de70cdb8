/* nn/file/keras/variations.h - settings of layers that change images at random, for the table of
 * layers. Private to nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_VARIATIONS_H
#define HPCT_NN_FILE_KERAS_VARIATIONS_H

#include "nn/file/keras/fields.h"

extern const hpct_keras_special hpct_keras_factor;          /* double[2]: one reaches both ways */
extern const hpct_keras_special hpct_keras_width_factor;    /* hpct_random_affine */
extern const hpct_keras_special hpct_keras_contrast_factor; /* double[2], in order */
extern const hpct_keras_special hpct_keras_value_range;     /* double[2] */

#endif
