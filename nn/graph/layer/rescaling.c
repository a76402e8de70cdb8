/* Rescaling: x * scale + offset, of all elements or per channel. */
#include "nn/graph/layer/line.h"

#include <math.h>

void hpct_model_add_rescaling(hpct_model *model, double scale, double offset)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Rescaling", "rescaling", &input))
        return;
    if (!isfinite(scale) || !isfinite(offset)) {
        hpct_layer_fail(model, "scale %g and offset %g must be numbers", scale, offset);
        return;
    }
    *hpct_layer_config_of(model) =
        (hpct_layer_config){.rescaling = {.scale = scale, .offset = offset}};
    int count = (int) hpct_graph_shape_count(&input);
    hpct_op_spec spec = {
        .kind = HPCT_OP_RESCALING,
        .scale = (float) scale,
        .offset = (float) offset,
        .dense = {.rows = 1, .in = count, .out = count},
    };
    hpct_layer_add_node(model, &spec, &input);
}

static hpct_layer_given_line by_scale(double scale, double offset)
{
    return (hpct_layer_given_line){.scale = scale, .offset = offset};
}

void hpct_model_add_rescaling_by(hpct_model *model, const hpct_per_channel *each)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Rescaling", "rescaling", &input))
        return;
    *hpct_layer_config_of(model) = (hpct_layer_config){.rescaling = {.each = *each}};
    hpct_layer_line_add(model, &input, each, by_scale);
}
