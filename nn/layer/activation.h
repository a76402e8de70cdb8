/* nn/layer/activation.h - activations as layers and at the end of other layers. */
#ifndef HPCT_NN_LAYER_ACTIVATION_H
#define HPCT_NN_LAYER_ACTIVATION_H

#include "nn/graph.h"

/* Checks that `activation` is one there is; fails the model otherwise. */
bool hpct_activation_check(hpct_model *model, hpct_activation activation);

/* Adds the node for what a layer does not do in its own; nothing for linear and ReLU. */
bool hpct_activation_finish(hpct_model *model, hpct_activation activation, const hpct_shape *shape);

#endif
