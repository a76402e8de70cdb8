/* nn/weights.h - the formats of weight files behind hpct_model_save_weights and
 * hpct_model_load_weights. Private to nn/. */
#ifndef HPCT_NN_WEIGHTS_H
#define HPCT_NN_WEIGHTS_H

#include "nn/run.h"

/* safetensors: one tensor for each parameter, under its name. Writes to the empty file `fd`. */
hpct_status hpct_safetensors_save(const hpct_model *model, int fd, const char *path);

/* Fills values[i], floats of parameter i in Keras' shape; names, types, shapes and lengths are
 * checked before the first is read. */
hpct_status hpct_safetensors_load(const hpct_model *model, const char *path, float **values);

#endif
