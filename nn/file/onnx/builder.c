/* Field numbers are those of onnx/onnx.proto. */
#include "nn/file/onnx/builder.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_NODE = 1 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_S = 4, ATTRIBUTE_INTS = 8 };
enum { ATTRIBUTE_TYPE = 20, TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_STRING = 3, TYPE_INTS = 7 };

hpct_status hpct_onnx_open(hpct_onnx *b, const hpct_model *model, const char *input)
{
    size_t count = (size_t) model->num_tensors;
    *b = (hpct_onnx){.model = model, .values = calloc(count, sizeof *b->values)};
    if (b->values == NULL)
        return hpct_fail_memory(count * sizeof *b->values);
    hpct_onnx_set(b, 0, HPCT_ONNX_LAST, input);
    return HPCT_OK;
}

void hpct_onnx_close(hpct_onnx *b)
{
    for (int i = 0; i < b->num_tensors; i++)
        free(b->tensors[i].data);
    for (int i = 0; i < b->num_texts; i++)
        free(b->texts[i]);
    free(b->tensors);
    free(b->texts);
    free(b->values);
    free(b->nodes.data);
}

/* Room for one more in a list; false without memory, which is kept. */
static bool grow(hpct_onnx *b, void *list, int num, int *room, size_t size)
{
    void **at = list;
    if (num < *room)
        return true;
    int more = *room > 0 ? 2 * *room : 64;
    void *grown = realloc(*at, (size_t) more * size);
    if (grown == NULL) {
        b->status = hpct_fail_memory((size_t) more * size);
        return false;
    }
    *at = grown;
    *room = more;
    return true;
}

/* Keeps a text until the end. */
static char *keep(hpct_onnx *b, char *text)
{
    static char none[] = "";
    if (text == NULL)
        b->status = hpct_fail_memory(0);
    if (text == NULL || !grow(b, &b->texts, b->num_texts, &b->room_texts, sizeof *b->texts)) {
        free(text);
        return none;
    }
    return b->texts[b->num_texts++] = text;
}

const char *hpct_onnx_name(hpct_onnx *b, const char *base, const char *suffix)
{
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", base, suffix != NULL ? "/" : "", suffix != NULL ? suffix : "") <
        0)
        text = NULL;
    return keep(b, text);
}

/* ---- nodes ---- */

void hpct_onnx_begin(hpct_onnx *b, const char *type, const char *const *inputs, const char *output)
{
    b->node = hpct_protobuf_begin(&b->nodes, GRAPH_NODE);
    for (; *inputs != NULL; inputs++)
        hpct_protobuf_text(&b->nodes, NODE_INPUT, *inputs);
    hpct_protobuf_text(&b->nodes, NODE_OUTPUT, output);
    hpct_protobuf_text(&b->nodes, NODE_NAME, output);
    hpct_protobuf_text(&b->nodes, NODE_TYPE, type);
}

void hpct_onnx_end(hpct_onnx *b)
{
    hpct_protobuf_end(&b->nodes, b->node);
}

static size_t begin_attribute(hpct_onnx *b, const char *name)
{
    size_t begin = hpct_protobuf_begin(&b->nodes, NODE_ATTRIBUTE);
    hpct_protobuf_text(&b->nodes, ATTRIBUTE_NAME, name);
    return begin;
}

static void end_attribute(hpct_onnx *b, size_t begin, int type)
{
    hpct_protobuf_integer(&b->nodes, ATTRIBUTE_TYPE, type);
    hpct_protobuf_end(&b->nodes, begin);
}

void hpct_onnx_int(hpct_onnx *b, const char *name, int64_t value)
{
    size_t begin = begin_attribute(b, name);
    hpct_protobuf_integer(&b->nodes, ATTRIBUTE_I, value);
    end_attribute(b, begin, TYPE_INT);
}

void hpct_onnx_float(hpct_onnx *b, const char *name, float value)
{
    size_t begin = begin_attribute(b, name);
    hpct_protobuf_float(&b->nodes, ATTRIBUTE_F, value);
    end_attribute(b, begin, TYPE_FLOAT);
}

void hpct_onnx_text(hpct_onnx *b, const char *name, const char *value)
{
    size_t begin = begin_attribute(b, name);
    hpct_protobuf_text(&b->nodes, ATTRIBUTE_S, value);
    end_attribute(b, begin, TYPE_STRING);
}

void hpct_onnx_ints(hpct_onnx *b, const char *name, const int64_t *values, int count)
{
    size_t begin = begin_attribute(b, name);
    for (int i = 0; i < count; i++)
        hpct_protobuf_integer(&b->nodes, ATTRIBUTE_INTS, values[i]);
    end_attribute(b, begin, TYPE_INTS);
}

void hpct_onnx_add(hpct_onnx *b, const char *type, const char *input, const char *second,
                   const char *output)
{
    hpct_onnx_begin(b, type, (const char *const[]){input, second, NULL}, output);
    hpct_onnx_end(b);
}

/* ---- constants ---- */

static const char *add_tensor(hpct_onnx *b, const hpct_onnx_tensor *tensor)
{
    if (!grow(b, &b->tensors, b->num_tensors, &b->room_tensors, sizeof *b->tensors)) {
        free(tensor->data);
        return "";
    }
    b->tensors[b->num_tensors++] = *tensor;
    return tensor->name;
}

const char *hpct_onnx_weight(hpct_onnx *b, const hpct_graph_node *node, int which,
                             const hpct_onnx_order *order)
{
    if (which < 0 || which >= node->num_params)
        return "";
    const hpct_graph_param *param = &b->model->params[node->first_param + which];
    hpct_onnx_tensor tensor = {.param = node->first_param + which,
                               .rank = param->shape.rank,
                               .from = param->shape,
                               .order = *order};
    char *name = strdup(param->name);
    tensor.name = keep(b, name);
    for (int i = 0; i < tensor.rank; i++)
        tensor.sizes[i] = param->shape.size[order->axes[i]];
    return add_tensor(b, &tensor);
}

/* "/constant", which no layer is named, numbered; takes the data. */
static const char *add_constant(hpct_onnx *b, void *data, int rank, int count, bool integers)
{
    char *name = NULL;
    if (data == NULL || asprintf(&name, "/constant/%d", b->num_tensors) < 0) {
        b->status = hpct_fail_memory(0);
        free(data);
        return "";
    }
    hpct_onnx_tensor tensor = {.name = keep(b, name),
                               .param = -1,
                               .rank = rank,
                               .sizes = {count},
                               .data = data,
                               .integers = integers};
    return add_tensor(b, &tensor);
}

static float *repeat(int count, float value)
{
    float *data = malloc((size_t) count * sizeof *data);
    for (int i = 0; data != NULL && i < count; i++)
        data[i] = value;
    return data;
}

const char *hpct_onnx_scalar(hpct_onnx *b, float value)
{
    return add_constant(b, repeat(1, value), 0, 1, false);
}

const char *hpct_onnx_floats(hpct_onnx *b, int count, float value)
{
    return add_constant(b, repeat(count, value), 1, count, false);
}

const char *hpct_onnx_integers(hpct_onnx *b, const int64_t *values, int count)
{
    size_t bytes = (size_t) count * sizeof *values;
    int64_t *data = malloc(bytes);
    if (data != NULL)
        memcpy(data, values, bytes);
    return add_constant(b, data, 1, count, true);
}

/* The tensor added last, with one number per channel, is broadcast over a value in this layout:
 * [channels] of channels last, else [channels][1][1]. */
static void spread(hpct_onnx *b, const hpct_shape *shape, hpct_onnx_layout layout)
{
    if (b->status != HPCT_OK)
        return;
    hpct_onnx_tensor *tensor = &b->tensors[b->num_tensors - 1];
    tensor->rank = layout == HPCT_ONNX_FIRST ? shape->rank : 1;
    for (int i = 0; i < tensor->rank; i++)
        tensor->sizes[i] = i == 0 ? shape->size[shape->rank - 1] : 1;
}

const char *hpct_onnx_channel_weight(hpct_onnx *b, const hpct_graph_node *node, int which,
                                     hpct_onnx_layout layout)
{
    static const hpct_onnx_order as_it_is = {{0, 1, 2, 3}};
    const char *name = hpct_onnx_weight(b, node, which, &as_it_is);
    spread(b, &b->model->tensors[node->output].shape, layout);
    return name;
}

const char *hpct_onnx_channels(hpct_onnx *b, const hpct_graph_node *node, const float *values,
                               hpct_onnx_layout layout)
{
    const hpct_shape *shape = &b->model->tensors[node->output].shape;
    int channels = shape->size[shape->rank - 1];
    size_t bytes = (size_t) channels * sizeof *values;
    float *data = malloc(bytes);
    if (data != NULL)
        memcpy(data, values, bytes);
    const char *name = add_constant(b, data, 1, channels, false);
    spread(b, shape, layout);
    return name;
}

/* ---- values ---- */

void hpct_onnx_set(hpct_onnx *b, int tensor, hpct_onnx_layout layout, const char *name)
{
    bool both = b->model->tensors[tensor].shape.rank == 1; /* there is nothing between */
    b->values[tensor].name[layout] = name;
    if (both)
        b->values[tensor].name[HPCT_ONNX_LAST] = b->values[tensor].name[HPCT_ONNX_FIRST] = name;
}

void hpct_onnx_alias(hpct_onnx *b, int tensor, int of)
{
    b->values[tensor].is_alias = true;
    b->values[tensor].of = of;
}

/* A layer's last tensor has its name, one within a layer also a number. */
static const char *tensor_name(hpct_onnx *b, int tensor)
{
    const hpct_model *model = b->model;
    const hpct_layer *layer = &model->layers[model->tensors[tensor].layer];
    char number[16];
    snprintf(number, sizeof number, "%d", tensor);
    return hpct_onnx_name(b, layer->name, layer->tensor == tensor ? NULL : number);
}

const char *hpct_onnx_result(hpct_onnx *b, const hpct_graph_node *node)
{
    return tensor_name(b, node->output);
}

/* With channels first to last, or the reverse. */
static void transpose(hpct_onnx *b, int tensor, hpct_onnx_layout to)
{
    int rank = b->model->tensors[tensor].shape.rank;
    int64_t axes[HPCT_MAX_RANK + 1] = {0};
    for (int i = 1; i <= rank; i++)
        axes[i] = to == HPCT_ONNX_LAST ? i % rank + 1 : (i + rank - 2) % rank + 1;
    const char *from =
        b->values[tensor].name[to == HPCT_ONNX_LAST ? HPCT_ONNX_FIRST : HPCT_ONNX_LAST];
    const char *name =
        hpct_onnx_name(b, from, to == HPCT_ONNX_LAST ? "channels_last" : "channels_first");
    hpct_onnx_begin(b, "Transpose", (const char *const[]){from, NULL}, name);
    hpct_onnx_ints(b, "perm", axes, rank + 1);
    hpct_onnx_end(b);
    hpct_onnx_set(b, tensor, to, name);
}

/* Whether the elements lie in the same order in both layouts. */
static bool is_plain(const hpct_shape *shape)
{
    size_t channels = (size_t) shape->size[shape->rank - 1];
    return channels == 1 || channels == hpct_graph_shape_count(shape);
}

/* A view of another tensor: a Reshape, unless the shape is the same. */
static void view(hpct_onnx *b, int tensor)
{
    const hpct_shape *shape = &b->model->tensors[tensor].shape;
    int root = b->model->tensors[tensor].root;
    const hpct_shape *from = &b->model->tensors[root].shape;
    int64_t sizes[HPCT_MAX_RANK + 1] = {0}; /* 0: as many samples as there are */
    if (hpct_graph_shape_equal(shape, from)) {
        hpct_onnx_alias(b, tensor, root);
        return;
    }
    hpct_onnx_layout layout = is_plain(from) ? hpct_onnx_layout_of(b, root) : HPCT_ONNX_LAST;
    const char *source = hpct_onnx_value_of(b, root, layout), *name = tensor_name(b, tensor);
    for (int i = 0; i < shape->rank; i++)
        sizes[i + 1] = shape->size[i];
    hpct_onnx_add(b, "Reshape", source, hpct_onnx_integers(b, sizes, shape->rank + 1), name);
    hpct_onnx_set(b, tensor, HPCT_ONNX_LAST, name);
}

/* The tensor that has the values: behind aliases, of which each may be of a view. */
static int need(hpct_onnx *b, int tensor)
{
    for (;;) {
        const hpct_onnx_value *value = &b->values[tensor];
        if (value->is_alias)
            tensor = value->of;
        else if (value->name[HPCT_ONNX_LAST] != NULL || value->name[HPCT_ONNX_FIRST] != NULL)
            return tensor;
        else
            view(b, tensor);
    }
}

const char *hpct_onnx_value_of(hpct_onnx *b, int tensor, hpct_onnx_layout layout)
{
    tensor = need(b, tensor);
    if (b->values[tensor].name[layout] == NULL)
        transpose(b, tensor, layout);
    return b->values[tensor].name[layout];
}

hpct_onnx_layout hpct_onnx_layout_of(hpct_onnx *b, int tensor)
{
    tensor = need(b, tensor);
    return b->values[tensor].name[HPCT_ONNX_FIRST] != NULL ? HPCT_ONNX_FIRST : HPCT_ONNX_LAST;
}

int hpct_onnx_channel_axis(const hpct_onnx *b, int tensor, hpct_onnx_layout layout)
{
    return layout == HPCT_ONNX_FIRST ? 1 : b->model->tensors[tensor].shape.rank;
}

hpct_onnx_ends hpct_onnx_ends_of(hpct_onnx *b, const hpct_graph_node *node)
{
    hpct_onnx_ends e = {.layout = hpct_onnx_layout_of(b, node->inputs[0])};
    e.from = hpct_onnx_value_of(b, node->inputs[0], e.layout);
    e.to = hpct_onnx_result(b, node);
    hpct_onnx_set(b, node->output, e.layout, e.to);
    return e;
}
