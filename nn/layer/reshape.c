/* Reshape: another shape over the same elements. One size may be -1 and is then worked out. */
#include "nn/graph.h"

void hpct_model_add_reshape(hpct_model *model, hpct_shape shape)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, "Reshape", "reshape", &input))
        return;
    char from[HPCT_SHAPE_TEXT], to[HPCT_SHAPE_TEXT];
    hpct_shape_format(&input, from);
    hpct_shape_format(&shape, to);
    int64_t count = (int64_t) hpct_shape_count(&input), known = 1;
    int open = -1;
    for (int i = 0; i < shape.rank && i < HPCT_MAX_RANK; i++) {
        if (shape.size[i] == -1 && open < 0)
            open = i;
        else if (shape.size[i] >= 1 && known <= count)
            known *= shape.size[i];
        else
            known = -1;
    }
    if (open >= 0 && known > 0 && count % known == 0) {
        shape.size[open] = (int) (count / known);
        known = count;
    }
    if (known != count || !hpct_shape_valid(&shape))
        hpct_layer_fail(model, "input %s cannot take the shape %s", from, to);
    else
        hpct_layer_add_view(model, &shape);
}
