/* Conv2DTranspose (Zeiler, Krishnan, Taylor and Fergus, Deconvolutional Networks, 2010): the
 * gradient of a convolution with regard to its source, plus a bias. Sizes as in Keras. */
#include "nn/graph/layer/activation.h"
#include "nn/graph/layer/window.h"

/* The result's size along one axis; 0 if it has 2^31 or more. */
static int grown(int in, int kernel, int stride, hpct_padding padding)
{
    int64_t size = (int64_t) in * stride;
    if (padding == HPCT_VALID && kernel > stride)
        size += kernel - stride;
    return size > INT32_MAX ? 0 : (int) size;
}

/* The convolution that is reversed; false, and the model fails, for wrong settings. */
static bool make_window(hpct_model *model, const hpct_shape *input,
                        const hpct_conv2d_transpose *conv, hpct_graph_window *window,
                        hpct_shape *output)
{
    hpct_shape back;
    hpct_layer_window_config config = {
        .what = "kernel",
        .size = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0] == 0 ? 1 : conv->strides[0],
                    conv->strides[1] == 0 ? 1 : conv->strides[1]},
        .dilation = {1, 1},
        .groups = 1,
        .padding = conv->padding,
        .channels = input->size[2],
    };
    *output = HPCT_SHAPE(0, 0, conv->filters);
    for (int i = 0; i < 2; i++)
        output->size[i] = config.strides[i] < 1 ? 1
                                                : grown(input->size[i], conv->kernel[i],
                                                        config.strides[i], conv->padding);
    if (output->size[0] > 0 && output->size[1] > 0)
        return hpct_layer_window_make(model, output, &config, window, &back);
    hpct_layer_fail(model, "its output would have 2^31 elements or more");
    return false;
}

void hpct_model_add_conv2d_transpose(hpct_model *model, const hpct_conv2d_transpose *conv)
{
    hpct_shape input, output, bias = HPCT_SHAPE(conv->filters);
    hpct_op_spec spec = {.kind = HPCT_OP_CONV2D_TRANSPOSE, .no_bias = conv->no_bias};
    if (!hpct_layer_begin(model, "Conv2DTranspose", "conv2d_transpose", &input) ||
        !hpct_layer_activation_check(model, conv->activation) ||
        !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->conv2d_transpose = *conv;
    if (conv->filters < 1) {
        hpct_layer_fail(model, "filters must be at least 1, not %d", conv->filters);
        return;
    }
    hpct_shape kernel = HPCT_SHAPE(conv->kernel[0], conv->kernel[1], conv->filters, input.size[2]);
    double field = (double) conv->kernel[0] * conv->kernel[1];
    if (!make_window(model, &input, conv, &spec.window, &output) ||
        !hpct_layer_add_node(model, &spec, &output) ||
        !hpct_layer_add_param(model, "kernel", &kernel, HPCT_GRAPH_INIT_GLOROT_UNIFORM,
                              field * conv->filters, field * input.size[2]) ||
        (!conv->no_bias &&
         !hpct_layer_add_param(model, "bias", &bias, HPCT_GRAPH_INIT_ZEROS, 0, 0)))
        return;
    int count = (int) hpct_graph_shape_count(&output) / conv->filters;
    hpct_op_spec relu = {.kind = HPCT_OP_RELU,
                         .dense = {.rows = count, .in = conv->filters, .out = conv->filters}};
    if (conv->activation == HPCT_RELU)
        hpct_layer_add_node(model, &relu, &output);
    else
        hpct_layer_activation_finish(model, conv->activation, &output);
}
