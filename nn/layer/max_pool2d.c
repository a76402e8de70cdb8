/* MaxPool2D: the largest value in each window, channel by channel. */
#include "nn/layer/window.h"

void hpct_model_add_max_pool2d(hpct_model *model, const hpct_max_pool2d *pool)
{
    hpct_shape input, output;
    hpct_op_spec spec = {.kind = HPCT_OP_MAX_POOL2D};
    if (!hpct_layer_begin(model, "MaxPooling2D", "max_pooling2d", &input))
        return;
    hpct_window_config config = {
        .what = "pool",
        .size = {pool->pool[0], pool->pool[1]},
        .strides = {pool->strides[0] == 0 ? pool->pool[0] : pool->strides[0],
                    pool->strides[1] == 0 ? pool->pool[1] : pool->strides[1]},
        .dilation = {1, 1},
        .groups = 1,
        .padding = pool->padding,
    };
    if (hpct_window_make(model, &input, &config, &spec.window, &output))
        hpct_layer_add_node(model, &spec, &output);
}
