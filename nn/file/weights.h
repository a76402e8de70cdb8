/* nn/file/weights.h - the formats of hpct_model_save_weights and hpct_model_load_weights; rescue
 * and check of weights. */
#ifndef HPCT_NN_FILE_WEIGHTS_H
#define HPCT_NN_FILE_WEIGHTS_H

#include "nn/file/keras/skips.h"

#include <hpctrain/model.h>
#include <stdbool.h>

/* safetensors: one tensor per parameter, with its name. Writes to the empty file `fd`. */
hpct_status hpct_weights_safetensors_save(const hpct_model *model, int fd, const char *path);

/* What a file says beside the weights. */
typedef struct hpct_weights_source {
    char *class_names, *trained_with; /* or NULL; the caller frees them */
    bool is_torch;                    /* a state_dict of torchvision */
} hpct_weights_source;

/* Fills values[i], floats of parameter i in Keras' shape; all names, types, shapes and lengths are
 * checked before values are read. */
hpct_status hpct_weights_safetensors_load(const hpct_model *model, const char *path, float **values,
                                          hpct_weights_source *source);
/* Of the layers all of whose weights fit; values[i] of others stay NULL, and *skips lists them. */
hpct_status hpct_weights_safetensors_load_fitting(const hpct_model *model, const char *path,
                                                  float **values, hpct_weights_source *source,
                                                  hpct_keras_skips *skips);

/* What a file of weights was trained with (nn/graph/compile.h), without a model; *text NULL: it
 * does not say. The caller frees it. */
hpct_status hpct_weights_trained_with(const char *path, char **text);
hpct_status hpct_weights_safetensors_trained_with(const char *path, char **text);

/* As hpct_model_save_weights, for weights whose destination failed: `path` must not exist. Without
 * `synced` the file is kept even if fsync fails. */
hpct_status hpct_model_rescue_weights(const hpct_model *model, const char *path, bool synced);

/* HPCT_ERR_DATA, naming the first parameter with a NaN or infinity. */
hpct_status hpct_model_check_finite(const hpct_model *model);

#endif
