/* nn/file/torchvision.h - the state_dict of a model of torchvision as weights of the built-in model
 * of the same network: names, layouts, and what one has and the other has not. Independent of the
 * file's format. */
#ifndef HPCT_NN_FILE_TORCHVISION_H
#define HPCT_NN_FILE_TORCHVISION_H

#include "nn/file/safetensors.h"
#include "nn/graph/graph.h"

/* Where the values of each parameter come from; zeros: the file is none of torchvision's. */
typedef struct hpct_weights_torch {
    struct hpct_weights_torch_source *sources; /* [num_params] */
} hpct_weights_torch;

/* If the file is a state_dict, by its names, and has none of this model's own weights: gives the
 * tensors names and shapes of the model's parameters, adds the biases that torch does not have,
 * whose values are then any of the file's, and drops what inference does not use: counters, and
 * the auxiliary classifier of Inception. `fitting`: layers that do not fit are left out later.
 *
 * Returns HPCT_ERR_DATA, naming the model to take, for weights of another network. The caller ends
 * *out with hpct_weights_torch_free() in any case. */
hpct_status hpct_weights_torch_adopt(hpct_weights_torch *out, const hpct_model *model,
                                     hpct_weights_st_index *index, const char *path, bool fitting);

/* Gives values read by that index the order of the parameters: values[i] of parameter i, or NULL.
 */
hpct_status hpct_weights_torch_convert(const hpct_weights_torch *torch, const hpct_model *model,
                                       float **values);

void hpct_weights_torch_free(hpct_weights_torch *torch);

#endif
