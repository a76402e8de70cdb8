/* hpct_model_save_onnx. The nodes are made in memory; the weights are written one by one after
 * them. Field numbers are those of onnx/onnx.proto. */
#include "nn/file/onnx/nodes.h"

#include "base/file.h"
#include "base/output.h"
#include "base/status.h"
#include "config.h"

#include <hpctrain/export.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7 };
enum { MODEL_OPSET = 8, OPSET_VERSION = 2 };
enum { MODEL_METADATA = 14, METADATA_KEY = 1, METADATA_VALUE = 2 };
enum { GRAPH_NAME = 2, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { ELEMENT_FLOAT = 1, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
enum { WIRE_LENGTH = 2 };

/* The parts of the file, in its order; the tensors lie between graph and graph_end. */
typedef struct saving {
    hpct_onnx builder;
    const char *input;
    hpct_protobuf head, graph_end, end;
    hpct_protobuf *tensors; /* [num_tensors] each up to its data */
    size_t bytes;           /* of the whole */
    const char *path;
} saving;

/* ---- the graph ---- */

static void put_value(hpct_protobuf *to, int field, const char *name, const hpct_shape *shape)
{
    size_t value = hpct_protobuf_begin(to, field);
    hpct_protobuf_text(to, VALUE_NAME, name);
    size_t type = hpct_protobuf_begin(to, VALUE_TYPE),
           tensor = hpct_protobuf_begin(to, TYPE_TENSOR);
    hpct_protobuf_integer(to, TENSOR_ELEMENT, ELEMENT_FLOAT);
    size_t sizes = hpct_protobuf_begin(to, TENSOR_SHAPE);
    size_t batch = hpct_protobuf_begin(to, SHAPE_DIM);
    hpct_protobuf_text(to, DIM_NAME, "batch");
    hpct_protobuf_end(to, batch);
    for (int i = 0; i < shape->rank; i++) {
        size_t dim = hpct_protobuf_begin(to, SHAPE_DIM);
        hpct_protobuf_integer(to, DIM_VALUE, shape->size[i]);
        hpct_protobuf_end(to, dim);
    }
    hpct_protobuf_end(to, sizes);
    hpct_protobuf_end(to, tensor);
    hpct_protobuf_end(to, type);
    hpct_protobuf_end(to, value);
}

/* An output that is the input gets a node. */
static const char *name_output(hpct_onnx *b, const char *input)
{
    const char *name = hpct_onnx_value_of(b, b->model->output, HPCT_ONNX_LAST);
    if (strcmp(name, input) != 0)
        return name;
    hpct_onnx_add(b, "Identity", input, NULL, "/output"); /* layers' names have no slash */
    return "/output";
}

/* A name that no layer has. */
static const char *name_input(const hpct_model *model)
{
    for (int i = 0; i < model->num_layers; i++) {
        if (strcmp(model->layers[i].name, "input") == 0)
            return "/input";
    }
    return "input";
}

static hpct_status make_graph(saving *s, const hpct_model *model)
{
    hpct_onnx *b = &s->builder;
    s->input = name_input(model);
    HPCT_TRY(hpct_onnx_open(b, model, s->input));
    for (int i = 0; i < model->num_nodes; i++)
        HPCT_TRY(hpct_onnx_add_node(b, &model->nodes[i]));
    const char *output = name_output(b, s->input);
    hpct_protobuf_text(&b->nodes, GRAPH_NAME, model->name);
    put_value(&s->graph_end, GRAPH_INPUT, s->input, &model->tensors[0].shape);
    put_value(&s->graph_end, GRAPH_OUTPUT, output, &model->tensors[model->output].shape);
    return b->nodes.failed || s->graph_end.failed ? hpct_fail_memory(0) : b->status;
}

/* ---- the file ---- */

/* A field's tag and the length of what follows. */
static void put_length(hpct_protobuf *to, int field, size_t length)
{
    hpct_protobuf_put_varint(to, (uint64_t) field << 3 | WIRE_LENGTH);
    hpct_protobuf_put_varint(to, length);
}

/* Each tensor up to its data, with tag and length; adds up their bytes. */
static hpct_status make_tensors(saving *s, size_t *bytes)
{
    const hpct_onnx *b = &s->builder;
    s->tensors = calloc((size_t) b->num_tensors + 1, sizeof *s->tensors);
    if (s->tensors == NULL)
        return hpct_fail_memory((size_t) b->num_tensors * sizeof *s->tensors);
    for (int i = 0; i < b->num_tensors; i++) {
        hpct_protobuf head = {0};
        size_t data = hpct_onnx_tensor_bytes(&b->tensors[i]);
        hpct_onnx_tensor_head(&b->tensors[i], &head);
        put_length(&s->tensors[i], GRAPH_TENSOR, head.size + data);
        hpct_protobuf_put(&s->tensors[i], head.data, head.size);
        bool failed = head.failed || s->tensors[i].failed;
        free(head.data);
        if (failed)
            return hpct_fail_memory(0);
        *bytes += s->tensors[i].size + data;
    }
    return HPCT_OK;
}

static void put_metadata(hpct_protobuf *to, const char *key, const char *value)
{
    size_t entry = hpct_protobuf_begin(to, MODEL_METADATA);
    hpct_protobuf_text(to, METADATA_KEY, key);
    hpct_protobuf_text(to, METADATA_VALUE, value);
    hpct_protobuf_end(to, entry);
}

static hpct_status make_rest(saving *s, size_t graph)
{
    hpct_protobuf_integer(&s->head, MODEL_IR, HPCT_ONNX_IR);
    hpct_protobuf_text(&s->head, MODEL_PRODUCER, "hpc-train");
    hpct_protobuf_text(&s->head, MODEL_PRODUCER_VERSION, PACKAGE_VERSION);
    put_length(&s->head, MODEL_GRAPH, graph);
    size_t opset = hpct_protobuf_begin(&s->end, MODEL_OPSET);
    hpct_protobuf_integer(&s->end, OPSET_VERSION, HPCT_ONNX_OPSET);
    hpct_protobuf_end(&s->end, opset);
    if (s->builder.model->class_names != NULL)
        put_metadata(&s->end, "class_names", s->builder.model->class_names);
    if (s->builder.model->trained_with != NULL)
        put_metadata(&s->end, "trained_with", s->builder.model->trained_with);
    if (s->head.failed || s->end.failed)
        return hpct_fail_memory(0);
    s->bytes = s->head.size + graph + s->end.size;
    return HPCT_OK;
}

static hpct_status prepare(saving *s, const hpct_model *model)
{
    size_t graph = 0;
    HPCT_TRY(make_graph(s, model));
    HPCT_TRY(make_tensors(s, &graph));
    graph += s->builder.nodes.size + s->graph_end.size;
    HPCT_TRY(make_rest(s, graph));
    if (s->bytes <= INT32_MAX)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "%s: the model takes %zu bytes, and an ONNX file has at most 2 GB: export it "
                     "as safetensors",
                     s->path, s->bytes);
}

static hpct_status write_part(const hpct_protobuf *part, int fd, const char *path)
{
    return hpct_file_write_all(fd, part->data, part->size, path);
}

static hpct_status put_tensor(const saving *s, int index, int fd)
{
    const hpct_onnx_tensor *tensor = &s->builder.tensors[index];
    void *data;
    HPCT_TRY(write_part(&s->tensors[index], fd, s->path));
    HPCT_TRY(hpct_onnx_tensor_data(tensor, s->builder.model, &data));
    hpct_status status = hpct_file_write_all(fd, data, hpct_onnx_tensor_bytes(tensor), s->path);
    free(data);
    return status;
}

static hpct_status write_file(void *argument, int fd)
{
    const saving *s = argument;
    HPCT_TRY(write_part(&s->head, fd, s->path));
    HPCT_TRY(write_part(&s->builder.nodes, fd, s->path));
    for (int i = 0; i < s->builder.num_tensors; i++)
        HPCT_TRY(put_tensor(s, i, fd));
    HPCT_TRY(write_part(&s->graph_end, fd, s->path));
    return write_part(&s->end, fd, s->path);
}

hpct_status hpct_model_save_onnx(const hpct_model *model, const char *path)
{
    saving s = {.path = path};
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before it is exported",
                         model->name);
    hpct_status status = prepare(&s, model);
    if (status == HPCT_OK)
        status = hpct_output_replace(path, write_file, &s);
    for (int i = 0; i < s.builder.num_tensors && s.tensors != NULL; i++)
        free(s.tensors[i].data);
    free(s.tensors);
    free(s.head.data);
    free(s.graph_end.data);
    free(s.end.data);
    hpct_onnx_close(&s.builder);
    return status;
}
