/* Creates a model from Keras' JSON: Sequential and Functional, of Keras 2 and Keras 3. The file is
 * untrusted. */
#include "nn/file/keras/elements.h"
#include "nn/file/keras/initializers.h"
#include "nn/file/keras/keras.h"
#include "nn/file/keras/refused.h"
#include "nn/file/keras/regularizers.h"

#include "base/file.h"
#include "base/kind.h"
#include "base/status.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAYERS 10000
#define MAX_TEXT ((size_t) 64 << 20)

/* The output of a layer. */
typedef struct output {
    const char *name;
    int tensor; /* -1 until the layer is added */
    bool read;
} output;

typedef struct reader {
    const json_t *config; /* the model's */
    const json_t *layers;
    size_t num_layers;
    hpct_model *model;
    output *outputs;   /* [num_layers] */
    int height, width; /* of an input whose size is open; 0: none */
    int generation;    /* of Keras that wrote it: 2 (and before), 3 (and later), 0: unknown */
} reader;

/* What a layer is called with. */
typedef struct call {
    output *inputs[HPCT_KERAS_MAX_INPUTS];
    int count;
    bool operation; /* takes a number, too */
    int numbers;
    double number;
    bool number_first;
} call;

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- one layer ---- */

static const char *class_of(const json_t *entry)
{
    const char *name = text_of(entry, "class_name");
    return name != NULL ? name : "";
}

/* Keras 2 writes the name also beside the config, for functional models only. */
static const char *name_of(const json_t *entry)
{
    const char *name = text_of(json_object_get(entry, "config"), "name");
    return name != NULL ? name : "";
}

static bool is_input(const json_t *entry)
{
    return strcmp(class_of(entry), "InputLayer") == 0;
}

/* Name of a dtype policy: a string, or an object DTypePolicy (Keras 3) or Policy (Keras 2). Other
 * objects, e.g. quantized policies, have such names, too, and are not accepted. */
static const char *policy_name(const json_t *dtype)
{
    static const char *const classes[] = {"", "DTypePolicy", "FloatDTypePolicy", "Policy"};
    for (size_t i = 0; json_is_object(dtype) && i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(class_of(dtype), classes[i]) == 0)
            return text_of(json_object_get(dtype, "config"), "name");
    }
    return json_string_value(dtype);
}

static void take_policy(hpct_keras_layer *layer)
{
    json_t *dtype = hpct_keras_take_or_null(layer, "dtype");
    const char *name = policy_name(dtype);
    layer->precision = HPCT_FP32;
    if (dtype != NULL && (name == NULL || !hpct_precision_of_policy(&layer->precision, name)))
        hpct_keras_fail(layer,
                        "dtype policy \"%.63s\" is not supported; there are: float32, "
                        "mixed_bfloat16, mixed_float16",
                        name != NULL ? name : class_of(dtype));
    json_decref(dtype);
}

/* Settings of every layer. Shapes that Keras 2 repeats in the first layer were read before. */
static void take_common(hpct_keras_layer *layer)
{
    take_policy(layer);
    layer->frozen = !hpct_keras_bool(layer, "trainable", true);
    hpct_keras_drop(layer, "name");
    hpct_keras_drop(layer, "batch_input_shape");
}

static hpct_status open_layer(hpct_keras_layer *layer, const json_t *entry, hpct_model *model)
{
    const json_t *config = json_object_get(entry, "config");
    *layer =
        (hpct_keras_layer){.class_name = class_of(entry), .name = name_of(entry), .model = model};
    if (!json_is_object(config) || layer->class_name[0] == '\0')
        return hpct_fail(HPCT_ERR_DATA, "a layer has no class_name or no config");
    layer->settings = json_copy((json_t *) (uintptr_t) config);
    return layer->settings != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static void close_layer(hpct_keras_layer *layer)
{
    json_decref(layer->settings);
    layer->settings = NULL;
}

/* An error of the model is that of the layer just added, which its message names. */
static hpct_status model_status(const hpct_model *model)
{
    if (model->status == HPCT_OK)
        return HPCT_OK;
    hpct_status status = model->status == HPCT_ERR_USAGE ? HPCT_ERR_DATA : model->status;
    return hpct_fail(status, "layer %s", model->message != NULL ? model->message : "out of memory");
}

/* One 16-bit layer sets the model's precision; fp32 layers are then exceptions. */
static void set_precision(hpct_keras_layer *layer)
{
    hpct_model *model = layer->model;
    model->layers[model->num_layers - 1].fp32 = layer->precision == HPCT_FP32;
    if (layer->precision == HPCT_FP32)
        return;
    if (model->precision != HPCT_FP32 && model->precision != layer->precision)
        hpct_keras_fail(layer, "dtype policy %s beside %s of another layer is not supported",
                        hpct_precision_policy(layer->precision),
                        hpct_precision_policy(model->precision));
    model->precision = layer->precision;
}

/* All layers from `first` on: of one layer here there may be several. */
static void set_frozen(const hpct_keras_layer *layer, int first)
{
    for (int i = first; i < layer->model->num_layers && layer->frozen; i++)
        hpct_layer_freeze(layer->model, i, true);
}

/* Adds what the layer's class is, after its common settings. */
static void add_class(hpct_keras_layer *layer, const json_t *entry)
{
    if (!hpct_keras_is_operation(entry)) {
        hpct_keras_find(layer->class_name)->add(layer);
        return;
    }
    if (hpct_keras_is_function(entry))
        hpct_keras_drop(layer, "function"); /* by which it was found */
    if (hpct_keras_taken(layer))
        hpct_keras_find_operation(entry)(layer);
}

/* Whether it can be called with what it is called with; an error of the layer else. */
static bool check_call(hpct_keras_layer *layer, const json_t *entry)
{
    const hpct_keras_class *class = hpct_keras_find(layer->class_name);
    bool operation = hpct_keras_is_operation(entry);
    if (is_input(entry))
        hpct_keras_fail(layer, "it comes after the first layer: only models with one input are "
                               "supported");
    else if (operation && layer->num_inputs + layer->numbers != 2)
        hpct_keras_fail(layer, "it must be called with two tensors, or one and a number");
    else if (!operation && class != NULL &&
             (layer->num_inputs < class->min_inputs || layer->num_inputs > class->max_inputs))
        hpct_keras_fail(layer, "it reads %d tensors, but must read %d to %d", layer->num_inputs,
                        class->min_inputs, class->max_inputs);
    return layer->status == HPCT_OK;
}

static void add_one(hpct_keras_layer *layer, const json_t *entry)
{
    json_t *initializers = NULL, *regularizers = NULL;
    if (!check_call(layer, entry))
        return;
    take_common(layer);
    hpct_keras_take_initializers(layer, &initializers);
    hpct_keras_take_regularizers(layer, &regularizers);
    if (layer->name[0] != '\0')
        hpct_model_name_layer(layer->model, layer->name);
    hpct_model_set_head(layer->model, layer->inputs[0]);
    int first = layer->model->num_layers;
    if (layer->status == HPCT_OK)
        add_class(layer, entry);
    if (layer->status == HPCT_OK)
        layer->status = model_status(layer->model);
    if (layer->status == HPCT_OK)
        set_precision(layer);
    if (layer->status == HPCT_OK)
        set_frozen(layer, first);
    hpct_keras_set_initializers(layer, initializers);
    hpct_keras_set_regularizers(layer, regularizers);
}

/* `c`: NULL for a layer that is called with its inputs only. */
static hpct_status add_layer(reader *r, const json_t *entry, const int *inputs, int num_inputs,
                             const call *c)
{
    hpct_keras_layer layer;
    HPCT_TRY(open_layer(&layer, entry, r->model));
    layer.generation = r->generation;
    if (c != NULL) {
        layer.numbers = c->numbers;
        layer.number = c->number;
        layer.number_first = c->number_first;
    }
    layer.num_inputs = num_inputs;
    memcpy(layer.inputs, inputs, (size_t) num_inputs * sizeof *inputs);
    add_one(&layer, entry);
    close_layer(&layer);
    return layer.status;
}

/* ---- a Sequential as a layer ---- */

static const json_t *batch_shape_of(const json_t *config)
{
    const json_t *shape = json_object_get(config, "batch_shape");
    return shape != NULL ? shape : json_object_get(config, "batch_input_shape");
}

static bool is_nested(const json_t *entry)
{
    return strcmp(class_of(entry), "Sequential") == 0 && hpct_keras_is_own(entry);
}

/* Its own input, or the shape it was built with, must be the tensor's. */
static hpct_status check_nested_input(const json_t *batch_shape, const hpct_shape *input)
{
    bool same = batch_shape == NULL || json_array_size(batch_shape) == (size_t) input->rank + 1;
    for (int i = 0; same && batch_shape != NULL && i < input->rank; i++) {
        const json_t *size = json_array_get(batch_shape, (size_t) i + 1);
        same = json_is_null(size) || json_integer_value(size) == input->size[i];
    }
    return same ? HPCT_OK : hpct_fail(HPCT_ERR_DATA, "its input has another shape than it reads");
}

static hpct_status add_inner(reader *r, const json_t *entry, const char *within)
{
    int head = hpct_model_head(r->model), first = r->model->num_layers;
    if (is_nested(entry))
        return hpct_fail(HPCT_ERR_DATA, "it has a Sequential in it: not supported");
    HPCT_TRY(add_layer(r, entry, &head, 1, NULL));
    for (int i = first; i < r->model->num_layers; i++)
        snprintf(r->model->layers[i].within, HPCT_NAME_SIZE, "%s", within);
    return HPCT_OK;
}

/* Trainable false of a nested model, which Keras writes with that of its layers: those from `first`
 * on. */
static hpct_status check_frozen(const reader *r, int first)
{
    for (int i = first; i < r->model->num_layers; i++) {
        const hpct_layer *layer = &r->model->layers[i];
        if (layer->parameters > 0 && !layer->frozen)
            return hpct_fail(HPCT_ERR_DATA,
                             "trainable false, but its layer %s is trainable: not supported",
                             layer->name);
    }
    return HPCT_OK;
}

/* Adds its layers one by one; they remember its name, for files. */
static hpct_status add_nested(reader *r, const json_t *entry, const int *inputs, int num_inputs)
{
    const json_t *config = json_object_get(entry, "config"), *shape = batch_shape_of(config);
    const json_t *layers = json_object_get(config, "layers"), *first = json_array_get(layers, 0);
    const json_t *trainable = json_object_get(config, "trainable");
    size_t at = is_input(first) ? 1 : 0, name = strlen(name_of(entry));
    int own = r->model->num_layers;
    if (num_inputs != 1 || json_array_size(layers) == at || name == 0 || name >= HPCT_NAME_SIZE)
        return hpct_fail(HPCT_ERR_DATA, "it must have a name, layers, and one input");
    if (trainable != NULL && !json_is_boolean(trainable))
        return hpct_fail(HPCT_ERR_DATA, "trainable must be true or false");
    for (int i = 0; i < r->model->num_layers; i++) {
        if (strcmp(r->model->layers[i].within, name_of(entry)) == 0)
            return hpct_fail(HPCT_ERR_DATA, "there is a layer of this name already");
    }
    if (at == 1)
        shape = batch_shape_of(json_object_get(first, "config"));
    HPCT_TRY(check_nested_input(shape, &r->model->tensors[inputs[0]].shape));
    hpct_model_set_head(r->model, inputs[0]);
    for (; at < json_array_size(layers); at++)
        HPCT_TRY(add_inner(r, json_array_get(layers, at), name_of(entry)));
    return json_is_false(trainable) ? check_frozen(r, own) : HPCT_OK;
}

static hpct_status within_layer(hpct_status status, const json_t *entry)
{
    char place[160];
    snprintf(place, sizeof place, "layer \"%.63s\" (%.63s)", name_of(entry), class_of(entry));
    return hpct_fail_within(status, place);
}

/* `c`: as add_layer has it. */
static hpct_status add_layer_or_nested(reader *r, const json_t *entry, const int *inputs,
                                       int num_inputs, const call *c)
{
    if (!is_nested(entry))
        return add_layer(r, entry, inputs, num_inputs, c);
    hpct_status status = add_nested(r, entry, inputs, num_inputs);
    return status == HPCT_OK ? HPCT_OK : within_layer(status, entry);
}

/* ---- the input ---- */

/* [null, 28, 28, 1]: the batch size, which must be null, and the shape of a sample. */
static hpct_status read_shape(hpct_shape *shape, const json_t *batch_shape, int height, int width)
{
    const int open[] = {0, height, width, 0, 0};
    size_t rank = json_array_size(batch_shape);
    if (rank < 2 || rank > HPCT_MAX_RANK + 1)
        return hpct_fail(HPCT_ERR_DATA,
                         "the input's shape must have 1 to %d sizes besides the "
                         "batch",
                         HPCT_MAX_RANK);
    if (!json_is_null(json_array_get(batch_shape, 0)))
        return hpct_fail(HPCT_ERR_DATA, "a fixed batch size in the input's shape is not supported");
    shape->rank = (int) rank - 1;
    for (size_t i = 1; i < rank; i++) {
        json_int_t size = json_integer_value(json_array_get(batch_shape, i));
        bool is_open = json_is_null(json_array_get(batch_shape, i)), side = rank == 4 && i < 3;
        if (is_open && side && open[i] == 0)
            return hpct_fail(HPCT_ERR_DATA, "height or width of its input is open: say the size "
                                            "with --resize WIDTHxHEIGHT, or build the model with "
                                            "one");
        if (is_open && side)
            size = open[i];
        if (size < 1 || size > INT_MAX)
            return hpct_fail(HPCT_ERR_DATA,
                             "size %zu of the input's shape must be fixed: build the "
                             "model with one",
                             i);
        shape->size[i - 1] = (int) size;
    }
    return HPCT_OK;
}

static hpct_status make_model(reader *r, const json_t *batch_shape)
{
    hpct_shape shape;
    const char *name = text_of(r->config, "name");
    HPCT_TRY(read_shape(&shape, batch_shape, r->height, r->width));
    r->model = hpct_model_new(name, shape);
    return r->model != NULL ? model_status(r->model) : hpct_fail_memory(0);
}

static hpct_status read_input_layer(reader *r, const json_t *entry)
{
    hpct_keras_layer layer;
    const json_t *config = json_object_get(entry, "config");
    HPCT_TRY(open_layer(&layer, entry, NULL));
    take_common(&layer);
    const json_t *shape = json_object_get(layer.settings, "batch_shape");
    const json_t *older = json_object_get(config, "batch_input_shape");
    if (shape != NULL && older != NULL && !json_equal(shape, older))
        hpct_keras_fail(&layer, "batch_shape and batch_input_shape differ");
    hpct_keras_drop(&layer, "batch_shape"); /* read by make_model */
    if (hpct_keras_bool(&layer, "sparse", false) || hpct_keras_bool(&layer, "ragged", false) ||
        hpct_keras_bool(&layer, "optional", false))
        hpct_keras_fail(&layer, "sparse, ragged and optional inputs are not supported");
    hpct_keras_taken(&layer);
    hpct_status status = layer.status;
    close_layer(&layer);
    return status == HPCT_OK ? make_model(r, batch_shape_of(config)) : status;
}

/* ---- Sequential ---- */

static hpct_status read_sequential(reader *r)
{
    const json_t *first = json_array_get(r->layers, 0);
    const json_t *shape = batch_shape_of(json_object_get(first, "config"));
    if (shape == NULL)
        shape = json_object_get(r->config, "build_input_shape");
    if (shape == NULL)
        return hpct_fail(HPCT_ERR_DATA, "the input's shape is not in it: build the model, or begin "
                                        "with an Input");
    size_t at = is_input(first) ? 1 : 0;
    HPCT_TRY(at == 1 ? read_input_layer(r, first) : make_model(r, shape));
    for (; at < r->num_layers; at++) {
        int head = hpct_model_head(r->model);
        HPCT_TRY(add_layer_or_nested(r, json_array_get(r->layers, at), &head, 1, NULL));
    }
    return HPCT_OK;
}

/* ---- Functional ---- */

static output *find_output(reader *r, const char *name)
{
    for (size_t i = 0; name != NULL && i < r->num_layers; i++) {
        if (r->outputs[i].name != NULL && strcmp(r->outputs[i].name, name) == 0)
            return &r->outputs[i];
    }
    return NULL;
}

static bool is_zero(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) == 0;
}

/* The number of a layer's only call in the model: 0, but Keras 2 counts a Sequential's own graph
 * before it. */
static bool is_only_call(const reader *r, const output *of, const json_t *number)
{
    const json_t *entry = json_array_get(r->layers, (size_t) (of - r->outputs));
    bool counted = r->generation == 2 && is_nested(entry);
    return is_zero(number) || (counted && json_integer_value(number) == 1);
}

/* A tensor, [name, node, tensor], possibly with further elements. Each layer is called once and has
 * one output. */
static hpct_status find_tensor(reader *r, output **found, const json_t *history)
{
    const char *name = json_string_value(json_array_get(history, 0));
    *found = find_output(r, name);
    if (*found == NULL)
        return hpct_fail(HPCT_ERR_DATA, "it reads layer \"%.63s\", but there is none",
                         name != NULL ? name : "");
    if (!is_only_call(r, *found, json_array_get(history, 1)) ||
        !is_zero(json_array_get(history, 2)))
        return hpct_fail(HPCT_ERR_DATA,
                         "it reads layer \"%.63s\", which is called more than once or "
                         "gives several tensors: not supported",
                         name);
    return HPCT_OK;
}

static hpct_status collect(reader *r, const json_t *from, call *c);

/* What a call of Keras 2 has besides its first tensor: the other side of an operator. */
static hpct_status collect_arguments(reader *r, json_t *arguments, call *c)
{
    const char *key;
    json_t *value;
    json_object_foreach (arguments, key, value) {
        bool other_side = c->operation && strcmp(key, "y") == 0;
        if (!other_side && !(c->operation && json_is_null(value)))
            return hpct_fail(HPCT_ERR_DATA, "it is called with arguments: not supported");
        if (other_side)
            HPCT_TRY(collect(r, value, c));
    }
    return HPCT_OK;
}

/* All tensors of a call; Keras 3 writes them as objects, several ones in lists. A number that comes
 * first is ["_CONSTANT_VALUE", -1, number, arguments] in Keras 2. */
static hpct_status collect(reader *r, const json_t *from, call *c)
{
    const char *name = json_string_value(json_array_get(from, 0));
    if (name != NULL && strcmp(name, "_CONSTANT_VALUE") == 0 &&
        json_integer_value(json_array_get(from, 1)) == -1) {
        HPCT_TRY(collect(r, json_array_get(from, 2), c));
        return collect_arguments(r, json_array_get(from, 3), c);
    }
    if (json_is_number(from) && c->operation && c->numbers == 0) {
        c->numbers++;
        c->number = json_number_value(from);
        c->number_first = c->count == 0;
        return fabs(c->number) <= (double) FLT_MAX
                   ? HPCT_OK
                   : hpct_fail(HPCT_ERR_DATA, "it is called with a number that no float can hold");
    }
    const json_t *history = json_object_get(json_object_get(from, "config"), "keras_history");
    bool is_history = json_is_string(json_array_get(from, 0)); /* Keras 2 */
    if (history != NULL || is_history) {
        if (c->count == HPCT_KERAS_MAX_INPUTS)
            return hpct_fail(HPCT_ERR_DATA, "it reads more than %d tensors", HPCT_KERAS_MAX_INPUTS);
        HPCT_TRY(find_tensor(r, &c->inputs[c->count++], history != NULL ? history : from));
        return is_history ? collect_arguments(r, json_array_get(from, 3), c) : HPCT_OK;
    }
    if (!json_is_array(from))
        return hpct_fail(HPCT_ERR_DATA, "it is called with something other than tensors");
    for (size_t i = 0; i < json_array_size(from); i++)
        HPCT_TRY(collect(r, json_array_get(from, i), c));
    return HPCT_OK;
}

/* Keras 3 writes the default of `training` for some layers; its fit, evaluate and predict override
 * it for all layers, so that it has no meaning. */
static bool has_meaning(const char *argument, const json_t *value)
{
    return !json_is_null(value) && strcmp(argument, "training") != 0;
}

static bool is_plain_call(json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        if (has_meaning(key, value))
            return false;
    }
    return true;
}

static hpct_status read_call(reader *r, const json_t *entry, call *c)
{
    const json_t *calls = json_object_get(entry, "inbound_nodes");
    const json_t *first = json_array_get(calls, 0);
    *c = (call){.operation = hpct_keras_is_operation(entry)};
    if (json_array_size(calls) == 0)
        return hpct_fail(HPCT_ERR_DATA, "it reads nothing, and is not the model's input");
    if (json_array_size(calls) != 1)
        return hpct_fail(HPCT_ERR_DATA, "it is called %zu times; shared layers are not supported",
                         json_array_size(calls));
    if (!json_is_object(first)) /* Keras 2 */
        return collect(r, first, c);
    if (!is_plain_call(json_object_get(first, "kwargs")))
        return hpct_fail(HPCT_ERR_DATA, "it is called with arguments: not supported");
    return collect(r, json_object_get(first, "args"), c);
}

/* Adds the layer if all its inputs exist; *added: whether they do. */
static hpct_status try_layer(reader *r, size_t index, bool *added)
{
    call c;
    int tensors[HPCT_KERAS_MAX_INPUTS];
    const json_t *entry = json_array_get(r->layers, index);
    hpct_status status = read_call(r, entry, &c);
    if (status != HPCT_OK)
        return within_layer(status, entry);
    for (int i = 0; i < c.count; i++) {
        tensors[i] = c.inputs[i]->tensor;
        if (tensors[i] < 0)
            return HPCT_OK;
    }
    for (int i = 0; i < c.count; i++)
        c.inputs[i]->read = true;
    status = add_layer_or_nested(r, entry, tensors, c.count, &c);
    r->outputs[index].tensor = status == HPCT_OK ? hpct_model_head(r->model) : -1;
    *added = true;
    return status;
}

/* Keras writes layers in topological order; any other order only takes more rounds. */
static hpct_status add_layers(reader *r)
{
    size_t left = 0;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < r->num_layers; i++)
        left += r->outputs[i].tensor < 0;
    while (left > 0 && status == HPCT_OK) {
        size_t before = left;
        for (size_t i = 0; i < r->num_layers && status == HPCT_OK; i++) {
            bool added = false;
            if (r->outputs[i].tensor < 0)
                status = try_layer(r, i, &added);
            left -= added;
        }
        if (left == before && status == HPCT_OK)
            return hpct_fail(HPCT_ERR_DATA, "%zu of its layers form a cycle", left);
    }
    return status;
}

/* [name, 0, 0], or a list or dictionary with one of them. */
static hpct_status find_end(reader *r, const char *what, output **found)
{
    json_t *list = json_object_get(r->config, what);
    if (json_is_string(json_array_get(list, 0)))
        return find_tensor(r, found, list);
    size_t count = json_is_object(list) ? json_object_size(list) : json_array_size(list);
    if (count != 1)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: it has %zu, but only models with one input and one "
                         "output are supported",
                         what, count);
    return find_tensor(r, found,
                       json_is_object(list) ? json_object_iter_value(json_object_iter(list))
                                            : json_array_get(list, 0));
}

static hpct_status check_readers(reader *r, const output *end)
{
    for (size_t i = 0; i < r->num_layers; i++) {
        const output *o = &r->outputs[i];
        if (!o->read && o != end)
            return hpct_fail(HPCT_ERR_DATA, "layer \"%.63s\" does not lead to the model's output",
                             o->name);
    }
    return HPCT_OK;
}

static hpct_status read_functional(reader *r)
{
    output *input = NULL, *end = NULL;
    r->outputs = calloc(r->num_layers, sizeof *r->outputs);
    if (r->outputs == NULL)
        return hpct_fail_memory(r->num_layers * sizeof *r->outputs);
    for (size_t i = 0; i < r->num_layers; i++) {
        const json_t *entry = json_array_get(r->layers, i);
        const char *name = name_of(entry), *beside = text_of(entry, "name");
        if (beside != NULL && strcmp(beside, name) != 0)
            return hpct_fail(HPCT_ERR_DATA, "a layer has two names, \"%.63s\" and \"%.63s\"",
                             beside, name);
        if (find_output(r, name) != NULL)
            return hpct_fail(HPCT_ERR_DATA, "two layers are called \"%.63s\"", name);
        r->outputs[i] = (output){.name = name, .tensor = -1};
    }
    HPCT_TRY(find_end(r, "input_layers", &input));
    HPCT_TRY(find_end(r, "output_layers", &end));
    const json_t *first = json_array_get(r->layers, (size_t) (input - r->outputs));
    if (!is_input(first))
        return hpct_fail(HPCT_ERR_DATA, "its input layer \"%.63s\" is not an InputLayer",
                         input->name);
    HPCT_TRY(read_input_layer(r, first));
    input->tensor = hpct_model_head(r->model);
    hpct_status status = add_layers(r);
    if (status == HPCT_OK)
        status = check_readers(r, end);
    if (status == HPCT_OK)
        hpct_model_set_head(r->model, end->tensor);
    return status;
}

/* ---- model ---- */

/* The error for a document that is not a model, though it may contain one. */
static hpct_status refuse_root(const json_t *root)
{
    const char *class_name = class_of(root);
    const char *what = class_name[0] != '\0' ? "its class is not Sequential or Functional"
                       : json_object_get(root, "layers") != NULL ? "it is what get_config() gives"
                       : json_object_get(root, "modelTopology") != NULL
                           ? "it is TensorFlow.js' wrapping of one"
                           : "it has no class_name";
    return hpct_fail(HPCT_ERR_DATA,
                     "not a Keras model (class_name \"%.63s\"): %s; model.to_json() writes one, "
                     "Sequential or Functional",
                     class_name, what);
}

static bool has_key(const json_t *layers, const char *key)
{
    bool has = false;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *config = json_object_get(json_array_get(layers, i), "config");
        has |= json_object_get(config, key) != NULL;
    }
    return has;
}

/* Keras 3 does not write its version here, and nor does an archive of Keras 2.12 and later: then
 * the shape of the input tells. */
static int find_generation(const json_t *root, const json_t *layers)
{
    const char *version = text_of(root, "keras_version"), *module = text_of(root, "module");
    if (version != NULL && version[0] >= '1' && version[0] <= '9')
        return strtol(version, NULL, 10) < 3 ? 2 : 3;
    if (module != NULL && strncmp(module, "tf_keras", 8) == 0)
        return 2;
    bool earlier = has_key(layers, "batch_input_shape"), later = has_key(layers, "batch_shape");
    return earlier == later ? 0 : earlier ? 2 : 3;
}

static hpct_status read_model(reader *r, const json_t *root)
{
    const char *class_name = class_of(root);
    r->config = json_object_get(root, "config");
    /* Keras 2.2.2 and before: the config of a Sequential is the list of layers. */
    r->layers = json_is_array(r->config) ? r->config : json_object_get(r->config, "layers");
    r->num_layers = json_array_size(r->layers);
    r->generation = find_generation(root, r->layers);
    bool functional = strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0;
    if (!functional && strcmp(class_name, "Sequential") != 0)
        return refuse_root(root);
    if (!hpct_keras_is_own(root))
        return hpct_fail(HPCT_ERR_DATA, "its class %.63s is not Keras' own", class_name);
    if (r->num_layers == 0 || r->num_layers > MAX_LAYERS)
        return hpct_fail(HPCT_ERR_DATA, "it has %zu layers, but there must be 1 to %d",
                         r->num_layers, MAX_LAYERS);
    const json_t *trainable = json_object_get(r->config, "trainable");
    if (trainable != NULL && !json_is_boolean(trainable))
        return hpct_fail(HPCT_ERR_DATA, "trainable must be true or false");
    HPCT_TRY(hpct_keras_check_classes(r->layers));
    HPCT_TRY(functional ? read_functional(r) : read_sequential(r));
    for (int i = 0; i < r->model->num_layers && json_is_false(trainable); i++)
        hpct_layer_freeze(r->model, i, true); /* none of its weights is trained */
    if (r->model->num_layers == 0)
        return hpct_fail(HPCT_ERR_DATA, "it has no layer besides its input");
    for (int i = 0; i < r->model->num_layers && r->model->precision == HPCT_FP32; i++)
        r->model->layers[i].fp32 = false; /* equal for all: --precision may change it */
    return HPCT_OK;
}

/* json.dump(model.to_json()) encodes JSON as a JSON string. */
static json_t *parse(const char *text, size_t length, json_error_t *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark of Windows editors */
    size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    json_t *root = json_loadb(text + skipped, length - skipped,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
    if (!json_is_string(root))
        return root;
    json_t *within = json_loadb(json_string_value(root), json_string_length(root),
                                JSON_REJECT_DUPLICATES, error);
    json_decref(root);
    return within;
}

hpct_status hpct_model_from_json_sized(hpct_model **out, const char *text, size_t length,
                                       int height, int width)
{
    json_error_t error;
    reader r = {.height = height, .width = width};
    json_t *root = length <= MAX_TEXT ? parse(text, length, &error) : NULL;
    if (length > MAX_TEXT)
        return hpct_fail(HPCT_ERR_DATA, "%zu bytes are too long for a model", length);
    if (root == NULL)
        return hpct_fail(HPCT_ERR_DATA, "line %d: %s", error.line, error.text);
    hpct_status status = read_model(&r, root);
    if (status == HPCT_OK)
        *out = r.model;
    else
        hpct_model_free(r.model);
    free(r.outputs);
    json_decref(root);
    return status;
}

hpct_status hpct_model_from_json(hpct_model **out, const char *text, size_t length)
{
    return hpct_model_from_json_sized(out, text, length, 0, 0);
}

hpct_status hpct_model_load_json(hpct_model **out, const char *path)
{
    return hpct_model_load_json_sized(out, path, 0, 0);
}

hpct_status hpct_model_load_json_sized(hpct_model **out, const char *path, int height, int width)
{
    char *text;
    size_t length;
    hpct_kind kind = HPCT_KIND_UNKNOWN;
    HPCT_TRY(hpct_kind_of_file(&kind, path));
    if (kind != HPCT_KIND_JSON && kind != HPCT_KIND_UNKNOWN)
        return hpct_fail(HPCT_ERR_DATA, "%s is %s", path, hpct_kind_says(kind));
    HPCT_TRY(hpct_file_read(&text, &length, path, MAX_TEXT));
    hpct_status status = hpct_model_from_json_sized(out, text, length, height, width);
    free(text);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
}
