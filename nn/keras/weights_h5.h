/* nn/keras/weights_h5.h - weights in Keras' HDF5 files.
 *
 * Keras 3, NAME.weights.h5: layers/GROUP/vars/K is the K-th variable of a layer, the trained ones
 * first. GROUP is the layer's class in small letters, numbered within the class in Keras' order of
 * layers (order.h), whatever the layer's own name: conv2d, conv2d_1, batch_normalization. What else
 * a layer may keep, and the optimizer, have groups of their own, which are left alone.
 *
 * Keras 2, NAME.h5 (or the whole model in one file, then under model_weights): attribute
 * layer_names lists the layers' groups, and each group's weight_names its variables. Read only. As
 * Keras does, layers that have weights are matched by their order, for names are numbered anew in
 * each run. */
#ifndef HPCT_NN_KERAS_WEIGHTS_H5_H
#define HPCT_NN_KERAS_WEIGHTS_H5_H

#include "nn/run.h"

/* HPCT_ERR_CONFIG where hpc-train was built without HDF5, or the library is not on this machine. */
hpct_status hpct_h5_available(void);

/* Writes Keras 3's layout to `fd`; `path` is for messages. */
hpct_status hpct_h5_save(const hpct_model *model, int fd, const char *path);

/* Fills values[i], floats of parameter i in Keras' shape, of either layout; all names, shapes and
 * types are checked before the first is read. */
hpct_status hpct_h5_load(const hpct_model *model, const char *path, float **values);

#endif
