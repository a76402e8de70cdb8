/* LayerScale (Touvron et al., Going Deeper with Image Transformers, 2021): each channel is
 * multiplied with a weight. A depthwise 1x1 convolution over all cells. */
#include "nn/graph/graph.h"

#include <math.h>

void hpct_model_add_layer_scale(hpct_model *model, double initial)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "LayerScale", "layer_scale", &input))
        return;
    if (!isfinite(initial)) {
        hpct_layer_fail(model, "the initial value %g must be a number", initial);
        return;
    }
    hpct_layer_config_of(model)->layer_scale = initial;
    int channels = input.size[input.rank - 1],
        cells = (int) hpct_graph_shape_count(&input) / channels;
    hpct_op_spec spec = {.kind = HPCT_OP_CONV2D,
                         .no_bias = true,
                         .window = {.in_h = cells,
                                    .in_w = 1,
                                    .in_c = channels,
                                    .out_h = cells,
                                    .out_w = 1,
                                    .out_c = channels,
                                    .kernel_h = 1,
                                    .kernel_w = 1,
                                    .stride_h = 1,
                                    .stride_w = 1,
                                    .dilation_h = 1,
                                    .dilation_w = 1,
                                    .groups = channels}};
    hpct_shape each = HPCT_SHAPE(channels);
    if (hpct_layer_add_node(model, &spec, &input) &&
        hpct_layer_add_param(model, "gamma", &each, HPCT_GRAPH_INIT_CONSTANT, 0, 0))
        model->params[model->num_params - 1].init[0] = initial;
}
