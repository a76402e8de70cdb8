/* nn/weights.h - the formats of weight files behind hpct_model_save_weights and
 * hpct_model_load_weights, and what else is asked of weights as such. */
#ifndef HPCT_NN_WEIGHTS_H
#define HPCT_NN_WEIGHTS_H

#include <hpctrain/model.h>

/* safetensors: one tensor for each parameter, under its name. Writes to the empty file `fd`. */
hpct_status hpct_safetensors_save(const hpct_model *model, int fd, const char *path);

/* Fills values[i], floats of parameter i in Keras' shape; names, types, shapes and lengths are
 * checked before the first is read. */
hpct_status hpct_safetensors_load(const hpct_model *model, const char *path, float **values);

/* As hpct_model_save_weights, for the last chance: `path` must not be there yet, and what cannot be
 * synced is kept. */
hpct_status hpct_model_rescue_weights(const hpct_model *model, const char *path);

/* HPCT_ERR_DATA, naming the first parameter that has a NaN or an infinity. */
hpct_status hpct_model_check_finite(const hpct_model *model);

#endif
