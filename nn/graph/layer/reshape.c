/* Reshape: another shape of the same elements. One size may be -1 and is then inferred. */
#include "nn/graph/graph.h"

/* Replaces the size -1, if there is one and the others divide `count`. */
static bool work_out(hpct_shape *shape, int64_t count)
{
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->size[i] == -1)
            open = i;
        else if (known <= count) /* already too large otherwise, and might overflow */
            known *= shape->size[i];
    }
    if (open < 0)
        return known == count;
    if (known > count || count % known != 0)
        return false;
    shape->size[open] = (int) (count / known);
    return true;
}

void hpct_model_add_reshape(hpct_model *model, hpct_shape shape)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Reshape", "reshape", &input))
        return;
    if (shape.rank < 1 || shape.rank > HPCT_MAX_RANK) {
        hpct_layer_fail(model, "the shape must have 1 to %d sizes, not %d", HPCT_MAX_RANK,
                        shape.rank);
        return;
    }
    char from[HPCT_GRAPH_SHAPE_TEXT], to[HPCT_GRAPH_SHAPE_TEXT];
    int open = 0, bad = 0;
    hpct_graph_shape_format(&input, from);
    hpct_graph_shape_format(&shape, to);
    for (int i = 0; i < shape.rank; i++) {
        open += shape.size[i] == -1;
        bad += shape.size[i] < -1 || shape.size[i] == 0;
    }
    if (open > 1)
        hpct_layer_fail(model, "only one size can be -1, but the shape is %s", to);
    else if (bad > 0)
        hpct_layer_fail(model, "sizes must be at least 1, or -1 for one of them, not %s", to);
    else if (!work_out(&shape, (int64_t) hpct_graph_shape_count(&input)))
        hpct_layer_fail(model, "input %s cannot take the shape %s", from, to);
    else if (hpct_layer_add_view(model, &shape))
        hpct_layer_config_of(model)->shape = shape;
}
