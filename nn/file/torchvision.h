/* nn/file/torchvision.h - the state_dict of torchvision's ResNet-50 (torchvision/models/resnet.py)
 * as weights of the built-in resnet50, which is the same network: names, layouts, and what one has
 * and the other has not. Independent of the file's format. */
#ifndef HPCT_NN_FILE_TORCHVISION_H
#define HPCT_NN_FILE_TORCHVISION_H

#include "nn/file/safetensors.h"
#include "nn/graph/graph.h"

/* Whether a file is such a one, by its names, and none of this model's own weights. */
bool hpct_torch_is(const hpct_model *model, const hpct_st_index *index);

/* Gives the tensors names and shapes of the model's parameters, adds the biases that torch does not
 * have, whose values are then any of the file's, and drops its counters. Returns HPCT_ERR_DATA for
 * a model that is no ResNet-50. */
hpct_status hpct_torch_adopt(const hpct_model *model, hpct_st_index *index, const char *path);

/* Gives values read by that index the order of the parameters: values[i] of parameter i, or NULL.
 */
hpct_status hpct_torch_convert(const hpct_model *model, float **values);

#endif
