/* Conv2D: y[i,j,o] = bias[o] + sum over u,v,c of kernel[u,v,c,o] x[i*s+u-p, j*s+v-p, c], the
 * cross-correlation that the field calls convolution; then an activation. */
#include "nn/layer/activation.h"
#include "nn/layer/window.h"

void hpct_model_add_conv2d(hpct_model *model, const hpct_conv2d *conv)
{
    hpct_shape input, output;
    hpct_op_spec spec = {.kind = HPCT_OP_CONV2D, .relu = conv->activation == HPCT_RELU};
    if (!hpct_layer_begin(model, "Conv2D", "conv2d", &input) ||
        !hpct_activation_check(model, conv->activation))
        return;
    if (conv->filters < 1) {
        hpct_layer_fail(model, "filters must be at least 1, not %d", conv->filters);
        return;
    }
    hpct_window_config config = {
        .what = "kernel",
        .size = {conv->kernel[0], conv->kernel[1]},
        .strides = {conv->strides[0] == 0 ? 1 : conv->strides[0],
                    conv->strides[1] == 0 ? 1 : conv->strides[1]},
        .padding = conv->padding,
        .channels = conv->filters,
    };
    if (!hpct_window_make(model, &input, &config, &spec.window, &output) ||
        !hpct_layer_add_node(model, &spec, &output))
        return;
    hpct_shape kernel = HPCT_SHAPE(conv->kernel[0], conv->kernel[1], input.size[2], conv->filters);
    hpct_shape bias = HPCT_SHAPE(conv->filters);
    double field = (double) conv->kernel[0] * conv->kernel[1];
    if (!hpct_layer_add_param(model, "kernel", &kernel, HPCT_INIT_GLOROT_UNIFORM,
                              field * input.size[2], field * conv->filters) ||
        !hpct_layer_add_param(model, "bias", &bias, HPCT_INIT_ZEROS, 0, 0))
        return;
    hpct_activation_finish(model, conv->activation, &output);
}
