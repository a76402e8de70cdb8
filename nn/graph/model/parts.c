/* Parts of the built-in image networks. */
#include "nn/graph/model/parts.h"

#include <stdarg.h>

void hpct_builtin_part_name(hpct_model *model, const char *format, ...)
{
    char text[HPCT_GRAPH_NAME_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hpct_model_name_layer(model, text);
}

int hpct_builtin_part_width(double channels)
{
    int width = (int) (channels + 4) / 8 * 8;
    if (width < 8)
        width = 8;
    return width < 0.9 * channels ? width + 8 : width; /* rounded down by at most a tenth */
}

void hpct_builtin_part_conv(hpct_model *model, int filters, int kernel, int stride,
                            hpct_padding padding)
{
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                .kernel = {kernel, kernel},
                                                .strides = {stride, stride},
                                                .padding = padding,
                                                .no_bias = true});
}

void hpct_builtin_part_depthwise(hpct_model *model, int kernel, int stride)
{
    hpct_model_add_depthwise_conv2d(
        model, &(hpct_depthwise_conv2d){.kernel = {kernel, kernel},
                                        .strides = {stride, stride},
                                        .padding = stride > 1 ? HPCT_VALID : HPCT_SAME,
                                        .no_bias = true});
}

void hpct_builtin_part_pad(hpct_model *model, int kernel)
{
    int half = kernel / 2;
    hpct_zero_padding2d zeros;
    for (int i = 0; i < 2; i++) {
        zeros.padding[i][0] = half - (hpct_builtin_part_size(model, i) % 2 == 0);
        zeros.padding[i][1] = half;
    }
    hpct_model_add_zero_padding2d(model, &zeros);
}

void hpct_builtin_part_predictions(hpct_model *model, int classes)
{
    hpct_model_name_layer(model, "predictions");
    hpct_model_add_dense(model, &(hpct_dense){.units = classes, .activation = HPCT_SOFTMAX});
}

void hpct_builtin_part_head(hpct_model *model, int classes)
{
    hpct_model_name_layer(model, "avg_pool");
    hpct_model_add_global_average_pool2d(model);
    hpct_builtin_part_predictions(model, classes);
}
