/* Flatten: one row per sample. A view: channels-last memory already has Keras' order. */
#include "nn/graph/graph.h"

void hpct_model_add_flatten(hpct_model *model)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Flatten", "flatten", &input))
        return;
    hpct_shape output = HPCT_SHAPE((int) hpct_graph_shape_count(&input));
    hpct_layer_add_view(model, &output);
}
