/* nn/file/keras/groups_h5.h - how Keras numbers layers and their variables in weight files. */
#ifndef HPCT_NN_FILE_KERAS_GROUPS_H5_H
#define HPCT_NN_FILE_KERAS_GROUPS_H5_H

#include "nn/file/keras/hdf5.h"
#include "nn/file/keras/order.h"
#include "nn/file/keras/weights_h5.h"
#include "nn/graph/graph.h"

#include <string.h>

/* A layer, with its group's name in Keras 3's files: its type and number, whatever the layer's
 * name. */
typedef struct hpct_keras_h5_group {
    int layer;
    int num_params;
    char name[7 * HPCT_KERAS_STEM_SIZE]; /* "conv2d_1", "sequential/layers/conv2d_1" */
} hpct_keras_h5_group;

/* The layers in Keras' order, [num_layers], then the groups of nested models, by number; the caller
 * frees *out. top: the group that a model's layers are in, "layers". */
hpct_status hpct_keras_h5_list_groups(const hpct_model *model, const char *top,
                                      hpct_keras_h5_group **out);

/* The which-th variable of a layer in Keras' order: trained ones before states. */
int hpct_keras_h5_param_of(const hpct_model *model, int layer, int which);

/* "kernel" of "conv2d/kernel:0"; NULL if not one of Keras' names. */
const char *hpct_keras_h5_word(const char *weight);
/* The layer of a weight by its name, false if it has none that fits: "conv2d" of "conv2d/kernel:0"
 * and "base/conv2d/kernel:0". */
bool hpct_keras_h5_layer_name(const char *weight, char *name, size_t size);

/* Weights of a nested model, which Keras 2's files have in one list, and its layers. */
typedef struct hpct_keras_h5_list {
    const hpct_model *model;
    const hpct_keras_h5_group *groups; /* of its layers */
    int num_groups;
    char *const *weights; /* their names in the file; as many as the layers have */
    size_t count;
} hpct_keras_h5_list;

/* params[i]: parameter of weight i. False if they are not those of the layers. */
bool hpct_keras_h5_match_list(const hpct_keras_h5_list *list, int *params);

/* A model in torchvision's form takes files with its own names of layers only: Keras' network may
 * have the same layers in the same order, but has another padding. */
static inline bool hpct_keras_h5_needs_names(const hpct_model *model)
{
    return model->torchvision != NULL && strcmp(model->torchvision, model->name) == 0;
}

/* HPCT_ERR_DATA if Keras wrote the group's weights on Theano. */
hpct_status hpct_keras_h5_check_backend(hpct_keras_hdf5 *file, const char *top);
hpct_status hpct_keras_h5_read_texts(hpct_keras_hdf5 *file, hpct_keras_h5_texts *texts);

#endif
