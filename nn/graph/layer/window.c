/* Sliding windows of Conv2D and poolings. */
#include "nn/graph/layer/window.h"

/* Number of outputs along one axis; *pad: padding before the first cell. */
static int slide(int in, int64_t reach, int stride, hpct_padding padding, int *pad)
{
    *pad = 0;
    if (padding == HPCT_VALID)
        return (int) ((in - reach) / stride) + 1;
    int out = (in - 1) / stride + 1;
    int64_t missing = (int64_t) (out - 1) * stride + reach - in;
    if (missing > 0)
        *pad = (int) (missing / 2);
    return out;
}

static int64_t reach(const hpct_layer_window_config *config, int axis)
{
    return (int64_t) (config->size[axis] - 1) * config->dilation[axis] + 1;
}

bool hpct_layer_window_takes(hpct_model *model, const hpct_shape *input)
{
    if (input->rank == 3)
        return true;
    char text[HPCT_GRAPH_SHAPE_TEXT];
    hpct_graph_shape_format(input, text);
    hpct_layer_fail(model,
                    "the input must be height x width x channels, but it is %s; "
                    "put a reshape before it",
                    text);
    return false;
}

static bool config_ok(hpct_model *model, const hpct_shape *input,
                      const hpct_layer_window_config *config)
{
    char text[HPCT_GRAPH_SHAPE_TEXT];
    hpct_graph_shape_format(input, text);
    if (!hpct_layer_window_takes(model, input))
        return false;
    if (config->size[0] < 1 || config->size[1] < 1) {
        hpct_layer_fail(model, "%s %dx%d must be at least 1x1", config->what, config->size[0],
                        config->size[1]);
        return false;
    }
    if (config->strides[0] < 1 || config->strides[1] < 1) {
        hpct_layer_fail(model, "strides %dx%d must be at least 1x1", config->strides[0],
                        config->strides[1]);
        return false;
    }
    if (config->dilation[0] < 1 || config->dilation[1] < 1) {
        hpct_layer_fail(model, "dilation %dx%d must be at least 1x1", config->dilation[0],
                        config->dilation[1]);
        return false;
    }
    bool dilated = config->dilation[0] > 1 || config->dilation[1] > 1;
    if (dilated && (config->strides[0] > 1 || config->strides[1] > 1)) {
        hpct_layer_fail(model, "strides %dx%d and dilation %dx%d cannot both be above 1",
                        config->strides[0], config->strides[1], config->dilation[0],
                        config->dilation[1]);
        return false;
    }
    if (config->padding != HPCT_VALID && config->padding != HPCT_SAME) {
        hpct_layer_fail(model, "padding must be HPCT_VALID or HPCT_SAME");
        return false;
    }
    bool fits = reach(config, 0) <= input->size[0] && reach(config, 1) <= input->size[1];
    if (config->padding == HPCT_VALID && !fits) {
        hpct_layer_fail(model, "%s %dx%d%s does not fit input %s", config->what, config->size[0],
                        config->size[1], dilated ? ", dilated," : "", text);
        return false;
    }
    if (reach(config, 0) > INT32_MAX || reach(config, 1) > INT32_MAX) {
        hpct_layer_fail(model, "%s %dx%d, dilated, is too large", config->what, config->size[0],
                        config->size[1]);
        return false;
    }
    return true;
}

bool hpct_layer_window_make(hpct_model *model, const hpct_shape *input,
                            const hpct_layer_window_config *config, hpct_graph_window *window,
                            hpct_shape *output)
{
    if (!config_ok(model, input, config))
        return false;
    *window = (hpct_graph_window){
        .in_h = input->size[0],
        .in_w = input->size[1],
        .in_c = input->size[2],
        .kernel_h = config->size[0],
        .kernel_w = config->size[1],
        .stride_h = config->strides[0],
        .stride_w = config->strides[1],
        .dilation_h = config->dilation[0],
        .dilation_w = config->dilation[1],
        .groups = config->groups,
        .out_c = config->channels > 0 ? config->channels : input->size[2],
    };
    window->out_h =
        slide(window->in_h, reach(config, 0), window->stride_h, config->padding, &window->pad_top);
    window->out_w =
        slide(window->in_w, reach(config, 1), window->stride_w, config->padding, &window->pad_left);
    *output = HPCT_SHAPE(window->out_h, window->out_w, window->out_c);
    return true;
}
