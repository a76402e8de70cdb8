/* nn/layer/activation.h - ReLU and softmax, as layers and at the end of other layers. */
#ifndef HPCT_NN_LAYER_ACTIVATION_H
#define HPCT_NN_LAYER_ACTIVATION_H

#include "nn/graph.h"

/* Checks that `activation` is one there is; fails the model otherwise. */
bool hpct_activation_check(hpct_model *model, hpct_activation activation);

/* Adds the node for what a layer could not fuse into its own (softmax); nothing for the others. */
bool hpct_activation_finish(hpct_model *model, hpct_activation activation, const hpct_shape *shape);

#endif
