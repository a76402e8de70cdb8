/* Add and Concatenate: layers that join branches. */
#include "nn/graph/graph.h"

static bool same_but_last(const hpct_shape *a, const hpct_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank - 1; i++)
        same = a->size[i] == b->size[i];
    return same;
}

/* Fills the spec with the tensors' last axes; all other axes must agree. */
static bool describe(hpct_model *model, const int *tensors, int count, hpct_op_spec *spec)
{
    const hpct_shape *first = &model->tensors[tensors[0]].shape;
    int last = first->rank - 1;
    spec->join.count = count;
    spec->join.rows = (int) hpct_shape_count(first) / first->size[last];
    for (int k = 0; k < count; k++) {
        const hpct_shape *shape = &model->tensors[tensors[k]].shape;
        bool fits = same_but_last(shape, first) &&
                    (spec->kind == HPCT_OP_CONCATENATE || shape->size[last] == first->size[last]);
        if (!fits) {
            char a[HPCT_SHAPE_TEXT], b[HPCT_SHAPE_TEXT];
            hpct_shape_format(first, a);
            hpct_shape_format(shape, b);
            hpct_layer_fail(model, "%s and %s cannot be %s", a, b,
                            spec->kind == HPCT_OP_ADD ? "added" : "concatenated");
            return false;
        }
        spec->join.size[k] = shape->size[last];
    }
    return true;
}

void hpct_model_add_add(hpct_model *model, const int *tensors, int count)
{
    hpct_op_spec spec = {.kind = HPCT_OP_ADD};
    if (!hpct_layer_begin_join(model, "Add", "add", tensors, count) ||
        !describe(model, tensors, count, &spec))
        return;
    hpct_shape output = model->tensors[tensors[0]].shape;
    hpct_layer_add_join(model, &spec, tensors, count, &output);
}

void hpct_model_add_concatenate(hpct_model *model, const int *tensors, int count)
{
    hpct_op_spec spec = {.kind = HPCT_OP_CONCATENATE};
    if (!hpct_layer_begin_join(model, "Concatenate", "concatenate", tensors, count) ||
        !describe(model, tensors, count, &spec))
        return;
    hpct_shape output = model->tensors[tensors[0]].shape;
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += spec.join.size[k];
    if (sum > INT32_MAX) {
        hpct_layer_fail(model, "its output would have 2^31 elements or more");
        return;
    }
    output.size[output.rank - 1] = (int) sum;
    hpct_layer_add_join(model, &spec, tensors, count, &output);
}
