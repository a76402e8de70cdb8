/* MaxPooling2D and AveragePooling2D: maximum or mean of each window, per channel; and their global
 * variants. */
#include "nn/graph/layer/window.h"

static void add_pool(hpct_model *model, hpct_op_kind kind, const char *type, const char *stem,
                     const hpct_pool2d *pool)
{
    hpct_shape input, output;
    hpct_op_spec spec = {.kind = kind};
    if (!hpct_layer_begin(model, type, stem, &input))
        return;
    hpct_pool2d *own = &hpct_layer_config_of(model)->pool2d;
    *own = *pool;
    for (int i = 0; i < 2; i++)
        own->strides[i] = pool->strides[i] == 0 ? pool->pool[i] : pool->strides[i];
    hpct_layer_window_config config = {
        .what = "pool",
        .size = {own->pool[0], own->pool[1]},
        .strides = {own->strides[0], own->strides[1]},
        .dilation = {1, 1},
        .groups = 1,
        .padding = pool->padding,
    };
    if (hpct_layer_window_make(model, &input, &config, &spec.window, &output))
        hpct_layer_add_node(model, &spec, &output);
}

void hpct_model_add_max_pool2d(hpct_model *model, const hpct_max_pool2d *pool)
{
    add_pool(model, HPCT_OP_MAX_POOL2D, "MaxPooling2D", "max_pooling2d", pool);
}

void hpct_model_add_average_pool2d(hpct_model *model, const hpct_average_pool2d *pool)
{
    add_pool(model, HPCT_OP_AVERAGE_POOL2D, "AveragePooling2D", "average_pooling2d", pool);
}

/* One window; then, without keepdims, a view without height and width. */
static void add_global_pool(hpct_model *model, hpct_op_kind kind, bool keepdims)
{
    bool mean = kind == HPCT_OP_AVERAGE_POOL2D;
    const char *type = mean ? "GlobalAveragePooling2D" : "GlobalMaxPooling2D",
               *stem = mean ? "global_average_pooling2d" : "global_max_pooling2d";
    hpct_shape input, output;
    hpct_op_spec spec = {.kind = kind};
    if (!hpct_layer_begin(model, type, stem, &input) || !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->keepdims = keepdims;
    hpct_layer_window_config config = {
        .what = "pool",
        .size = {input.size[0], input.size[1]},
        .strides = {1, 1},
        .dilation = {1, 1},
        .groups = 1,
    };
    if (!hpct_layer_window_make(model, &input, &config, &spec.window, &output) ||
        !hpct_layer_add_node(model, &spec, &output) || keepdims)
        return;
    output = HPCT_SHAPE(input.size[2]);
    hpct_layer_add_view(model, &output);
}

void hpct_model_add_global_average_pool2d(hpct_model *model)
{
    add_global_pool(model, HPCT_OP_AVERAGE_POOL2D, false);
}

void hpct_model_add_global_max_pool2d(hpct_model *model)
{
    add_global_pool(model, HPCT_OP_MAX_POOL2D, false);
}

void hpct_model_add_global_average_pool2d_keepdims(hpct_model *model)
{
    add_global_pool(model, HPCT_OP_AVERAGE_POOL2D, true);
}

void hpct_model_add_global_max_pool2d_keepdims(hpct_model *model)
{
    add_global_pool(model, HPCT_OP_MAX_POOL2D, true);
}
