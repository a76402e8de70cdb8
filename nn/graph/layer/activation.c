/* Activation as a layer, and activations after Conv2D and Dense that are not fused into them. */
#include "nn/graph/layer/activation.h"

/* The operation of each activation; linear has none. */
static const hpct_op_kind kinds[] = {
    [HPCT_RELU] = HPCT_OP_RELU,   [HPCT_SOFTMAX] = HPCT_OP_SOFTMAX,
    [HPCT_RELU6] = HPCT_OP_RELU6, [HPCT_SIGMOID] = HPCT_OP_SIGMOID,
    [HPCT_TANH] = HPCT_OP_TANH,   [HPCT_GELU] = HPCT_OP_GELU,
};

bool hpct_activation_check(hpct_model *model, hpct_activation activation)
{
    if ((unsigned) activation < sizeof kinds / sizeof *kinds)
        return true;
    hpct_layer_fail(model, "there is no activation %d", (int) activation);
    return false;
}

/* Softmax works along the last axis, the others on each element. */
static bool add_node(hpct_model *model, hpct_activation activation, const hpct_shape *shape)
{
    int last = shape->size[shape->rank - 1];
    hpct_op_spec spec = {
        .kind = kinds[activation],
        .dense = {.rows = (int) hpct_shape_count(shape) / last, .in = last, .out = last},
    };
    return hpct_layer_add_node(model, &spec, shape);
}

bool hpct_activation_finish(hpct_model *model, hpct_activation activation, const hpct_shape *shape)
{
    bool done = activation == HPCT_LINEAR || activation == HPCT_RELU;
    return done || add_node(model, activation, shape);
}

void hpct_model_add_activation(hpct_model *model, hpct_activation activation)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Activation", "activation", &input) ||
        !hpct_activation_check(model, activation))
        return;
    hpct_layer_config_of(model)->activation = activation;
    if (activation == HPCT_LINEAR)
        hpct_layer_add_view(model, &input);
    else
        add_node(model, activation, &input);
}
