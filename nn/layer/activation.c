/* Activation as a layer of its own, and softmax behind Conv2D and Dense. */
#include "nn/layer/activation.h"

bool hpct_activation_check(hpct_model *model, hpct_activation activation)
{
    switch (activation) {
    case HPCT_LINEAR:
    case HPCT_RELU:
    case HPCT_SOFTMAX:
        return true;
    }
    hpct_layer_fail(model, "there is no activation %d", (int) activation);
    return false;
}

/* Softmax works along the last axis, ReLU on each element. */
static bool add_node(hpct_model *model, hpct_op_kind kind, const hpct_shape *shape)
{
    int last = shape->size[shape->rank - 1];
    hpct_op_spec spec = {
        .kind = kind,
        .dense = {.rows = (int) hpct_shape_count(shape) / last, .in = last, .out = last},
    };
    return hpct_layer_add_node(model, &spec, shape);
}

bool hpct_activation_finish(hpct_model *model, hpct_activation activation, const hpct_shape *shape)
{
    return activation != HPCT_SOFTMAX || add_node(model, HPCT_OP_SOFTMAX, shape);
}

void hpct_model_add_activation(hpct_model *model, hpct_activation activation)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Activation", "activation", &input) ||
        !hpct_activation_check(model, activation))
        return;
    if (activation == HPCT_RELU)
        add_node(model, HPCT_OP_RELU, &input);
    else if (activation == HPCT_SOFTMAX)
        add_node(model, HPCT_OP_SOFTMAX, &input);
    else
        hpct_layer_add_view(model, &input);
}
