/* Add, also with a factor, Multiply and Concatenate: layers that join branches. */
#include "nn/graph/graph.h"

#include <math.h>

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
    spec->join.rows = (int) hpct_graph_shape_count(first) / first->size[last];
    for (int k = 0; k < count; k++) {
        const hpct_shape *shape = &model->tensors[tensors[k]].shape;
        bool fits = same_but_last(shape, first) &&
                    (spec->kind == HPCT_OP_CONCATENATE || shape->size[last] == first->size[last]);
        if (!fits) {
            char a[HPCT_GRAPH_SHAPE_TEXT], b[HPCT_GRAPH_SHAPE_TEXT];
            hpct_graph_shape_format(first, a);
            hpct_graph_shape_format(shape, b);
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

/* Whether a tensor of 1 x 1 x C can be repeated over the other's rows. */
static bool broadcasts(const hpct_shape *one, const hpct_shape *whole)
{
    int last = one->rank - 1;
    return one->rank == whole->rank && one->size[last] == whole->size[last] &&
           hpct_graph_shape_count(one) == (size_t) one->size[last];
}

/* A product of two tensors: the larger first. */
static bool multiply_two(hpct_model *model, int a, int b)
{
    const hpct_shape *left = &model->tensors[a].shape, *right = &model->tensors[b].shape;
    bool swap = hpct_graph_shape_count(left) < hpct_graph_shape_count(right);
    int both[] = {swap ? b : a, swap ? a : b};
    hpct_shape output = model->tensors[both[0]].shape, other = model->tensors[both[1]].shape;
    int last = output.size[output.rank - 1];
    hpct_op_spec spec = {
        .kind = HPCT_OP_MULTIPLY,
        .join = {.rows = (int) hpct_graph_shape_count(&output) / last,
                 .count = 2,
                 .size = {last, last},
                 .broadcasts = !hpct_graph_shape_equal(&output, &other)},
    };
    if (!spec.join.broadcasts || broadcasts(&other, &output))
        return hpct_layer_add_join(model, &spec, both, 2, &output);
    char from[HPCT_GRAPH_SHAPE_TEXT], by[HPCT_GRAPH_SHAPE_TEXT];
    hpct_graph_shape_format(left, from);
    hpct_graph_shape_format(right, by);
    hpct_layer_fail(model, "%s and %s cannot be multiplied: both need one shape, or one 1x1xC",
                    from, by);
    return false;
}

/* Several inputs are multiplied one after the other. */
void hpct_model_add_multiply(hpct_model *model, const int *tensors, int count)
{
    if (!hpct_layer_begin_join(model, "Multiply", "multiply", tensors, count) ||
        !multiply_two(model, tensors[0], tensors[1]))
        return;
    for (int k = 2; k < count; k++) {
        if (!multiply_two(model, hpct_model_head(model), tensors[k]))
            return;
    }
}

/* A Rescaling of the second tensor, then an Add. */
void hpct_model_add_scaled_add(hpct_model *model, const int tensors[2], double scale)
{
    hpct_op_spec spec = {.kind = HPCT_OP_ADD};
    if (!hpct_layer_begin_join(model, "CustomScaleLayer", "custom_scale_layer", tensors, 2) ||
        !describe(model, tensors, 2, &spec))
        return;
    if (!isfinite(scale)) {
        hpct_layer_fail(model, "scale %g must be a number", scale);
        return;
    }
    hpct_layer_config_of(model)->scaled_add = scale;
    hpct_shape output = model->tensors[tensors[0]].shape;
    int count = (int) hpct_graph_shape_count(&output);
    hpct_op_spec scaling = {.kind = HPCT_OP_RESCALING,
                            .scale = (float) scale,
                            .dense = {.rows = 1, .in = count, .out = count}};
    model->output = tensors[1];
    if (hpct_layer_add_node(model, &scaling, &output))
        hpct_layer_add_join(model, &spec, (int[]){tensors[0], model->output}, 2, &output);
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
