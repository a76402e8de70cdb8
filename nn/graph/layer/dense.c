/* Dense: y = x kernel + bias along the last axis, then an activation. */
#include "nn/graph/layer/activation.h"

void hpct_model_add_dense(hpct_model *model, const hpct_dense *dense)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Dense", "dense", &input) ||
        !hpct_layer_activation_check(model, dense->activation))
        return;
    hpct_layer_config_of(model)->dense = *dense;
    if (dense->units < 1) {
        hpct_layer_fail(model, "units must be at least 1, not %d", dense->units);
        return;
    }
    int in = input.size[input.rank - 1];
    hpct_op_spec spec = {
        .kind = HPCT_OP_DENSE,
        .relu = dense->activation == HPCT_RELU,
        .no_bias = dense->no_bias,
        .dense = {.rows = (int) hpct_graph_shape_count(&input) / in, .in = in, .out = dense->units},
    };
    hpct_shape output = input;
    output.size[output.rank - 1] = dense->units;
    hpct_shape kernel = HPCT_SHAPE(in, dense->units), bias = HPCT_SHAPE(dense->units);
    if (!hpct_layer_add_node(model, &spec, &output) ||
        !hpct_layer_add_param(model, "kernel", &kernel, HPCT_GRAPH_INIT_GLOROT_UNIFORM, in,
                              dense->units) ||
        (!dense->no_bias &&
         !hpct_layer_add_param(model, "bias", &bias, HPCT_GRAPH_INIT_ZEROS, 0, 0)))
        return;
    hpct_layer_activation_finish(model, dense->activation, &output);
}
