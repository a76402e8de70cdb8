/* nn/file/keras/weights_h5.h - weights in Keras' HDF5 files.
 *
 * Keras 3, NAME.weights.h5: layers/GROUP/vars/K is the K-th variable of a layer, trained ones
 * first. GROUP is the layer's class in snake case, numbered within the class in Keras' order of
 * layers (order.h), whatever the layer's name: conv2d, conv2d_1, batch_normalization. Groups of the
 * optimizer and of other state are ignored.
 *
 * Keras 2, NAME.h5 (or a whole model's file, under model_weights): attribute layer_names lists the
 * layers' groups, and each group's weight_names its variables. Read only. As in Keras, layers with
 * weights are matched by order, because names are renumbered in each run. */
#ifndef HPCT_NN_FILE_KERAS_WEIGHTS_H5_H
#define HPCT_NN_FILE_KERAS_WEIGHTS_H5_H

#include "nn/file/keras/skips.h"
#include "nn/plan/run.h"

/* HPCT_ERR_CONFIG if hpc-train was built without HDF5 or the library is not installed. */
hpct_status hpct_keras_h5_available(void);

/* Writes Keras 3's layout to `fd`; `path` is for messages. */
hpct_status hpct_keras_h5_save(const hpct_model *model, int fd, const char *path);

/* Texts beside the weights: attributes of the root, as save writes them; NULL: none. */
typedef struct hpct_keras_h5_texts {
    char *class_names, *trained_with; /* the caller frees them */
} hpct_keras_h5_texts;

/* What hpct_keras_h5_load does, or hpct_keras_h5_load_fitting if skips is not NULL, in a child
 * process: a file on which libhdf5 crashes, or does not come to its end, is HPCT_ERR_DATA. `model`
 * NULL: reads the texts only. */
hpct_status hpct_keras_h5_read(const hpct_model *model, const char *path, float **values,
                               hpct_keras_h5_texts *texts, hpct_keras_skips *skips);

/* Fills values[i], floats of parameter i in Keras' shape, from either layout; all names, shapes and
 * types are checked before values are read. */
hpct_status hpct_keras_h5_load(const hpct_model *model, const char *path, float **values,
                               hpct_keras_h5_texts *texts);

/* The texts alone. */
hpct_status hpct_keras_h5_load_texts(const char *path, hpct_keras_h5_texts *texts);

/* Fills values[i] of the layers all of whose weights fit; others stay NULL, and are listed in
 * *skips. A layer is looked for by its name, where the file has names, else by Keras' order. */
hpct_status hpct_keras_h5_load_fitting(const hpct_model *model, const char *path, float **values,
                                       hpct_keras_h5_texts *texts, hpct_keras_skips *skips);

#endif
