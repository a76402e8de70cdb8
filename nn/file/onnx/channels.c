/* Operations with numbers per channel: PReLU, Normalization, LayerNormalization and
 * GroupNormalization, LayerScale. */
#include "nn/file/onnx/rows.h"

/* A slope per channel or per element: broadcast from the right. */
void hpct_onnx_add_prelu(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    int rank = b->model->tensors[node->output].shape.rank;
    hpct_onnx_order order = {{0}};
    for (int i = 0; i < rank; i++)
        order.axes[i] = e.layout == HPCT_ONNX_FIRST ? (i + rank - 1) % rank : i;
    hpct_onnx_add(b, type, e.from, hpct_onnx_weight(b, node, 0, &order), e.to);
}

void hpct_onnx_add_scale(hpct_onnx *b, const hpct_graph_node *node, const char *name)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    hpct_onnx_add(b, "Mul", e.from, hpct_onnx_channel_weight(b, node, 0, e.layout), name);
}

/* ---- Normalization ---- */

static void add_given(hpct_onnx *b, const hpct_graph_node *node, const hpct_onnx_ends *e)
{
    const hpct_op_spec *spec = &node->spec;
    const char *centred = hpct_onnx_name(b, e->to, "centred"),
               *scaled = hpct_onnx_name(b, e->to, "scaled");
    hpct_onnx_add(b, "Sub", e->from, hpct_onnx_channels(b, node, spec->line.mean, e->layout),
                  centred);
    hpct_onnx_add(b, "Mul", centred, hpct_onnx_channels(b, node, spec->line.scale, e->layout),
                  scaled);
    hpct_onnx_add(b, "Add", scaled, hpct_onnx_channels(b, node, spec->line.offset, e->layout),
                  e->to);
}

void hpct_onnx_add_normalization(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    hpct_onnx_ends e = hpct_onnx_ends_of(b, node);
    if (node->spec.line.given) {
        add_given(b, node, &e);
        return;
    }
    const char *centred = hpct_onnx_name(b, e.to, "centred"),
               *root = hpct_onnx_name(b, e.to, "root"),
               *deviation = hpct_onnx_name(b, e.to, "deviation");
    hpct_onnx_add(b, "Sub", e.from,
                  hpct_onnx_channel_weight(b, node, HPCT_GRAPH_LINE_MEAN, e.layout), centred);
    hpct_onnx_add(b, "Sqrt", hpct_onnx_channel_weight(b, node, HPCT_GRAPH_LINE_VARIANCE, e.layout),
                  NULL, root);
    hpct_onnx_add(b, "Max", root, hpct_onnx_scalar(b, HPCT_GRAPH_LINE_EPSILON), deviation);
    hpct_onnx_add(b, type, centred, deviation, e.to);
}

/* ---- LayerNormalization, GroupNormalization ---- */

static const hpct_onnx_order as_it_is = {{0, 1, 2, 3}};

static void add_layer_norm(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    int gamma = hpct_op_norm_param(&node->spec, HPCT_GRAPH_NORM_GAMMA),
        beta = hpct_op_norm_param(&node->spec, HPCT_GRAPH_NORM_BETA);
    const char *name = hpct_onnx_result(b, node),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_LAST),
               *scale = gamma >= 0 ? hpct_onnx_weight(b, node, gamma, &as_it_is)
                                   : hpct_onnx_floats(b, node->spec.group.channels, 1),
               *offset = beta >= 0 ? hpct_onnx_weight(b, node, beta, &as_it_is) : NULL;
    hpct_onnx_begin(b, type, (const char *const[]){input, scale, offset, NULL}, name);
    hpct_onnx_int(b, "axis", -1);
    hpct_onnx_float(b, "epsilon", node->spec.group.epsilon);
    hpct_onnx_end(b);
    hpct_onnx_set(b, node->output, HPCT_ONNX_LAST, name);
}

/* [samples][groups][elements] of channels first, normalized, in their shape again. */
static void add_groups(hpct_onnx *b, const hpct_graph_node *node, const char *name)
{
    const hpct_op_spec *spec = &node->spec;
    const hpct_shape *shape = &b->model->tensors[node->output].shape;
    const char *result = hpct_onnx_result(b, node), *grouped = hpct_onnx_name(b, result, "grouped"),
               *normal = hpct_onnx_name(b, result, "normal"),
               *input = hpct_onnx_value_of(b, node->inputs[0], HPCT_ONNX_FIRST);
    int groups = spec->group.groups, each = spec->group.channels / groups;
    int64_t whole[HPCT_MAX_RANK + 1] = {0, spec->group.channels};
    const int64_t split[] = {0, groups, (int64_t) each * spec->group.cells};
    for (int i = 0; i < shape->rank - 1; i++)
        whole[i + 2] = shape->size[i];
    hpct_onnx_add(b, "Reshape", input, hpct_onnx_integers(b, split, 3), grouped);
    const char *ones = hpct_onnx_floats(b, groups, 1), *zeros = hpct_onnx_floats(b, groups, 0);
    hpct_onnx_begin(b, "InstanceNormalization", (const char *const[]){grouped, ones, zeros, NULL},
                    normal);
    hpct_onnx_float(b, "epsilon", spec->group.epsilon);
    hpct_onnx_end(b);
    hpct_onnx_add(b, "Reshape", normal, hpct_onnx_integers(b, whole, shape->rank + 1), name);
}

static void add_grouped(hpct_onnx *b, const hpct_graph_node *node)
{
    int gamma = hpct_op_norm_param(&node->spec, HPCT_GRAPH_NORM_GAMMA),
        beta = hpct_op_norm_param(&node->spec, HPCT_GRAPH_NORM_BETA);
    const char *result = hpct_onnx_result(b, node),
               *scaled = beta >= 0 ? hpct_onnx_name(b, result, "scaled") : result,
               *whole = gamma >= 0 ? hpct_onnx_name(b, result, "whole") : scaled;
    add_groups(b, node, whole);
    if (gamma >= 0)
        hpct_onnx_add(b, "Mul", whole, hpct_onnx_channel_weight(b, node, gamma, HPCT_ONNX_FIRST),
                      scaled);
    if (beta >= 0)
        hpct_onnx_add(b, "Add", scaled, hpct_onnx_channel_weight(b, node, beta, HPCT_ONNX_FIRST),
                      result);
    hpct_onnx_set(b, node->output, HPCT_ONNX_FIRST, result);
}

void hpct_onnx_add_group_norm(hpct_onnx *b, const hpct_graph_node *node, const char *type)
{
    if (node->spec.group.cells == 1 && node->spec.group.groups == 1)
        add_layer_norm(b, node, type);
    else
        add_grouped(b, node);
}
