/* Conv2D: y[i,j,o] = bias[o] + sum over u,v,c of kernel[u,v,c,o] x[i*s+u*d-p, j*s+v*d-p, c], i.e.
 * cross-correlation; then an activation. DepthwiseConv2D has one group per input channel: its
 * kernel [kh][kw][in][multiplier] is, element by element, a grouped kernel [kh][kw][1][in *
 * multiplier]. */
#include "nn/graph/layer/activation.h"
#include "nn/graph/layer/window.h"

/* Common part, after defaults are resolved and counts are checked. kernel_in and kernel_out are the
 * last two sizes of Keras' kernel shape, which also determine its fans. */
static void add_convolution(hpct_model *model, const hpct_shape *input, const hpct_conv2d *conv,
                            int kernel_in, int kernel_out)
{
    hpct_shape output;
    hpct_op_spec spec = {
        .kind = HPCT_OP_CONV2D, .relu = conv->activation == HPCT_RELU, .no_bias = conv->no_bias};
    hpct_window_config config = {
        .what = "kernel",
        .size = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0] == 0 ? 1 : conv->strides[0],
                    conv->strides[1] == 0 ? 1 : conv->strides[1]},
        .dilation = {conv->dilation[0] == 0 ? 1 : conv->dilation[0],
                     conv->dilation[1] == 0 ? 1 : conv->dilation[1]},
        .groups = conv->groups,
        .padding = conv->padding,
        .channels = conv->filters,
    };
    if (!hpct_window_make(model, input, &config, &spec.window, &output) ||
        !hpct_layer_add_node(model, &spec, &output))
        return;
    hpct_shape kernel = HPCT_SHAPE(conv->kernel[0], conv->kernel[1], kernel_in, kernel_out);
    hpct_shape bias = HPCT_SHAPE(conv->filters);
    double field = (double) conv->kernel[0] * conv->kernel[1];
    if (!hpct_layer_add_param(model, "kernel", &kernel, HPCT_INIT_GLOROT_UNIFORM, field * kernel_in,
                              field * kernel_out) ||
        (!conv->no_bias && !hpct_layer_add_param(model, "bias", &bias, HPCT_INIT_ZEROS, 0, 0)))
        return;
    hpct_activation_finish(model, conv->activation, &output);
}

void hpct_model_add_conv2d(hpct_model *model, const hpct_conv2d *conv)
{
    hpct_shape input;
    hpct_conv2d whole = *conv;
    if (!hpct_layer_begin(model, "Conv2D", "conv2d", &input) ||
        !hpct_activation_check(model, conv->activation) || !hpct_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->conv2d = *conv;
    int channels = input.size[2];
    whole.groups = conv->groups == 0 ? 1 : conv->groups;
    if (conv->filters < 1)
        hpct_layer_fail(model, "filters must be at least 1, not %d", conv->filters);
    else if (whole.groups < 1)
        hpct_layer_fail(model, "groups must be at least 1, not %d", whole.groups);
    else if (channels % whole.groups != 0 || conv->filters % whole.groups != 0)
        hpct_layer_fail(model, "%d groups do not divide %d input channels and %d filters",
                        whole.groups, channels, conv->filters);
    else
        add_convolution(model, &input, &whole, channels / whole.groups, conv->filters);
}

void hpct_model_add_depthwise_conv2d(hpct_model *model, const hpct_depthwise_conv2d *conv)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "DepthwiseConv2D", "depthwise_conv2d", &input) ||
        !hpct_activation_check(model, conv->activation) || !hpct_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->depthwise_conv2d = *conv;
    int channels = input.size[2], multiplier = conv->multiplier == 0 ? 1 : conv->multiplier;
    hpct_conv2d whole = {
        .kernel = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0], conv->strides[1]},
        .dilation = {conv->dilation[0], conv->dilation[1]},
        .groups = channels,
        .padding = conv->padding,
        .no_bias = conv->no_bias,
        .activation = conv->activation,
    };
    if (multiplier < 1)
        hpct_layer_fail(model, "the depth multiplier must be at least 1, not %d", multiplier);
    else if (__builtin_mul_overflow(channels, multiplier, &whole.filters))
        hpct_layer_fail(model, "its output would have 2^31 elements or more");
    else
        add_convolution(model, &input, &whole, channels, multiplier);
}
