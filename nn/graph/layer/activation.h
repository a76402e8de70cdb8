/* nn/graph/layer/activation.h - activations as layers and at the end of other layers. */
#ifndef HPCT_NN_GRAPH_LAYER_ACTIVATION_H
#define HPCT_NN_GRAPH_LAYER_ACTIVATION_H

#include "nn/graph/graph.h"

/* Checks that `activation` is valid; else fails the model. */
bool hpct_layer_activation_check(hpct_model *model, hpct_activation activation);

/* Adds the node of an activation after a layer; none for linear and ReLU. */
bool hpct_layer_activation_finish(hpct_model *model, hpct_activation activation,
                                  const hpct_shape *shape);

#endif
