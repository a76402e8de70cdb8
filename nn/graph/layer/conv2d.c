/* Conv2D: y[i,j,o] = bias[o] + sum over u,v,c of kernel[u,v,c,o] x[i*s+u*d-p, j*s+v*d-p, c], i.e.
 * cross-correlation; then an activation. DepthwiseConv2D has one group per input channel: its
 * kernel [kh][kw][in][multiplier] is, element by element, a grouped kernel [kh][kw][1][in *
 * multiplier]. SeparableConv2D is a depthwise and a 1x1 convolution. */
#include "nn/graph/layer/activation.h"
#include "nn/graph/layer/window.h"

/* Adds the node and its kernel, after defaults are resolved and counts are checked. kernel_in and
 * kernel_out are the last two sizes of Keras' kernel shape, which also determine its fans. */
static bool add_window(hpct_model *model, const hpct_shape *input, const hpct_conv2d *conv,
                       const char *name, int kernel_in, int kernel_out, hpct_shape *output)
{
    hpct_op_spec spec = {
        .kind = HPCT_OP_CONV2D, .relu = conv->activation == HPCT_RELU, .no_bias = conv->no_bias};
    hpct_layer_window_config config = {
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
    hpct_shape kernel = HPCT_SHAPE(conv->kernel[0], conv->kernel[1], kernel_in, kernel_out);
    double field = (double) conv->kernel[0] * conv->kernel[1];
    return hpct_layer_window_make(model, input, &config, &spec.window, output) &&
           hpct_layer_add_node(model, &spec, output) &&
           hpct_layer_add_param(model, name, &kernel, HPCT_GRAPH_INIT_GLOROT_UNIFORM,
                                field * kernel_in, field * kernel_out);
}

/* With the bias and the activation. */
static void add_convolution(hpct_model *model, const hpct_shape *input, const hpct_conv2d *conv,
                            const char *name, int kernel_in, int kernel_out)
{
    hpct_shape output, bias = HPCT_SHAPE(conv->filters);
    if (!add_window(model, input, conv, name, kernel_in, kernel_out, &output) ||
        (!conv->no_bias &&
         !hpct_layer_add_param(model, "bias", &bias, HPCT_GRAPH_INIT_ZEROS, 0, 0)))
        return;
    hpct_layer_activation_finish(model, conv->activation, &output);
}

/* The convolution with one group per input channel; false, and the model fails, for a wrong
 * multiplier. */
static bool make_depthwise(hpct_model *model, int channels, const hpct_depthwise_conv2d *conv,
                           int *multiplier, hpct_conv2d *whole)
{
    *multiplier = conv->multiplier == 0 ? 1 : conv->multiplier;
    *whole = (hpct_conv2d){
        .kernel = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0], conv->strides[1]},
        .dilation = {conv->dilation[0], conv->dilation[1]},
        .groups = channels,
        .padding = conv->padding,
        .no_bias = conv->no_bias,
        .activation = conv->activation,
    };
    if (*multiplier < 1)
        hpct_layer_fail(model, "the depth multiplier must be at least 1, not %d", *multiplier);
    else if (__builtin_mul_overflow(channels, *multiplier, &whole->filters))
        hpct_layer_fail(model, "its output would have 2^31 elements or more");
    else
        return true;
    return false;
}

void hpct_model_add_conv2d(hpct_model *model, const hpct_conv2d *conv)
{
    hpct_shape input;
    hpct_conv2d whole = *conv;
    if (!hpct_layer_begin(model, "Conv2D", "conv2d", &input) ||
        !hpct_layer_activation_check(model, conv->activation) ||
        !hpct_layer_window_takes(model, &input))
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
        add_convolution(model, &input, &whole, "kernel", channels / whole.groups, conv->filters);
}

void hpct_model_add_depthwise_conv2d(hpct_model *model, const hpct_depthwise_conv2d *conv)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "DepthwiseConv2D", "depthwise_conv2d", &input) ||
        !hpct_layer_activation_check(model, conv->activation) ||
        !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->depthwise_conv2d = *conv;
    int multiplier;
    hpct_conv2d whole;
    if (make_depthwise(model, input.size[2], conv, &multiplier, &whole))
        add_convolution(model, &input, &whole, "kernel", input.size[2], multiplier);
}

void hpct_model_add_separable_conv2d(hpct_model *model, const hpct_separable_conv2d *conv)
{
    hpct_shape input, between;
    if (!hpct_layer_begin(model, "SeparableConv2D", "separable_conv2d", &input) ||
        !hpct_layer_activation_check(model, conv->activation) ||
        !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->separable_conv2d = *conv;
    int multiplier;
    hpct_conv2d whole, point = {.filters = conv->filters,
                                .kernel = {1, 1},
                                .groups = 1,
                                .no_bias = conv->no_bias,
                                .activation = conv->activation};
    const hpct_depthwise_conv2d depthwise = {
        .kernel = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0], conv->strides[1]},
        .dilation = {conv->dilation[0], conv->dilation[1]},
        .multiplier = conv->multiplier,
        .padding = conv->padding,
        .no_bias = true,
    };
    if (conv->filters < 1)
        hpct_layer_fail(model, "filters must be at least 1, not %d", conv->filters);
    else if (make_depthwise(model, input.size[2], &depthwise, &multiplier, &whole) &&
             add_window(model, &input, &whole, "depthwise_kernel", input.size[2], multiplier,
                        &between))
        add_convolution(model, &between, &point, "pointwise_kernel", between.size[2],
                        conv->filters);
}
