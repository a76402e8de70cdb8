/* Creates a model from Keras' JSON: Sequential and Functional, of Keras 2 and Keras 3, and such
 * models as layers of it. The file is untrusted. */
#include "nn/file/keras/keras.h"
#include "nn/file/keras/reader.h"
#include "nn/file/keras/refused.h"

#include "base/file.h"
#include "base/kind.h"
#include "base/status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAYERS 10000
#define MAX_TEXT ((size_t) 64 << 20)
#define MAX_DEPTH 8 /* of nested models */

typedef hpct_keras_level level;
typedef hpct_keras_output output;
typedef hpct_keras_reader reader;

static bool is_input(const json_t *entry)
{
    return strcmp(hpct_keras_class_of(entry), "InputLayer") == 0;
}

bool hpct_keras_is_model(const json_t *entry)
{
    const char *class_name = hpct_keras_class_of(entry);
    bool functional = strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0;
    return (functional || hpct_keras_is_sequential(entry)) && hpct_keras_is_own(entry);
}

/* Keras 2.2.2 and before: the config of a Sequential is the list of layers. */
const json_t *hpct_keras_layers_of(const json_t *config)
{
    return json_is_array(config) ? config : json_object_get(config, "layers");
}

static hpct_status within_layer(hpct_status status, const json_t *entry)
{
    char place[160];
    snprintf(place, sizeof place, "layer \"%.63s\" (%.63s)", hpct_keras_name_of(entry),
             hpct_keras_class_of(entry));
    return hpct_fail_within(status, place);
}

/* ---- the input ---- */

static const json_t *batch_shape_of(const json_t *config)
{
    const json_t *shape = json_object_get(config, "batch_shape");
    return shape != NULL ? shape : json_object_get(config, "batch_input_shape");
}

/* The shape that a model's config has for its input: in its first layer, of a nested model in that
 * one's, or beside its layers; NULL if it has none. */
static const json_t *input_shape_of(const json_t *config)
{
    const json_t *first = json_array_get(hpct_keras_layers_of(config), 0);
    const json_t *shape = batch_shape_of(json_object_get(first, "config"));
    if (shape == NULL)
        shape = json_object_get(config, "build_input_shape");
    return shape == NULL && hpct_keras_is_model(first)
               ? input_shape_of(json_object_get(first, "config"))
               : shape;
}

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

static hpct_status make_model(const level *l, const json_t *batch_shape)
{
    hpct_shape shape;
    reader *r = l->reader;
    if (batch_shape == NULL)
        return hpct_fail(HPCT_ERR_DATA, "the input's shape is not in it: build the model, or begin "
                                        "with an Input");
    HPCT_TRY(read_shape(&shape, batch_shape, r->height, r->width));
    r->model = hpct_model_new(hpct_keras_text(l->config, "name"), shape);
    return r->model != NULL ? hpct_keras_model_status(r->model) : hpct_fail_memory(0);
}

/* A nested model's own input, or the shape it was built with, must be the tensor's. */
static hpct_status check_nested_input(const level *l, const json_t *batch_shape)
{
    const hpct_model *model = l->reader->model;
    const hpct_shape *input = &model->tensors[hpct_model_head(model)].shape;
    bool same = batch_shape == NULL || json_array_size(batch_shape) == (size_t) input->rank + 1;
    for (int i = 0; same && batch_shape != NULL && i < input->rank; i++) {
        const json_t *size = json_array_get(batch_shape, (size_t) i + 1);
        same = json_is_null(size) || json_integer_value(size) == input->size[i];
    }
    return same ? HPCT_OK : hpct_fail(HPCT_ERR_DATA, "its input has another shape than it reads");
}

/* Makes the outermost level's model; that of a nested one reads the model's head. */
static hpct_status begin_level(const level *l, const json_t *batch_shape)
{
    return l->outer == NULL ? make_model(l, batch_shape) : check_nested_input(l, batch_shape);
}

static hpct_status read_input_layer(const level *l, const json_t *entry)
{
    hpct_keras_layer layer;
    const json_t *config = json_object_get(entry, "config");
    HPCT_TRY(hpct_keras_open_layer(&layer, entry, NULL));
    hpct_keras_take_common(&layer);
    const json_t *shape = json_object_get(layer.settings, "batch_shape");
    const json_t *older = json_object_get(config, "batch_input_shape");
    if (shape != NULL && older != NULL && !json_equal(shape, older))
        hpct_keras_fail(&layer, "batch_shape and batch_input_shape differ");
    hpct_keras_drop(&layer, "batch_shape"); /* read by begin_level */
    if (hpct_keras_bool(&layer, "sparse", false) || hpct_keras_bool(&layer, "ragged", false) ||
        hpct_keras_bool(&layer, "optional", false))
        hpct_keras_fail(&layer, "sparse, ragged and optional inputs are not supported");
    hpct_keras_taken(&layer);
    hpct_status status = layer.status;
    hpct_keras_close_layer(&layer);
    return status == HPCT_OK ? begin_level(l, batch_shape_of(config)) : status;
}

/* ---- models as layers ---- */

static hpct_status read_level(level *l, bool sequential);

/* Trainable false of a nested model, which Keras writes with that of its layers, those from `first`
 * on. If some were set to true later, Keras 3 trains these, and Keras 2 none. */
static hpct_status check_frozen(const reader *r, int first)
{
    const hpct_layer *learning = NULL, *frozen = NULL;
    for (int i = first; i < r->model->num_layers; i++) {
        const hpct_layer *layer = &r->model->layers[i];
        if (layer->parameters > 0 && !layer->frozen)
            learning = layer;
        else if (layer->parameters > 0)
            frozen = layer;
    }
    if (learning == NULL || (r->generation == 3 && frozen != NULL))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA, "trainable false, but its layer %s is trainable: not supported",
                     learning->name);
}

static hpct_status check_nested(const json_t *entry, int num_inputs)
{
    size_t name = strlen(hpct_keras_name_of(entry));
    const json_t *trainable = json_object_get(json_object_get(entry, "config"), "trainable");
    if (num_inputs != 1 || name == 0 || name >= HPCT_GRAPH_NAME_SIZE)
        return hpct_fail(HPCT_ERR_DATA, "it must have a name, layers, and one input");
    if (trainable != NULL && !json_is_boolean(trainable))
        return hpct_fail(HPCT_ERR_DATA, "trainable must be true or false");
    return HPCT_OK;
}

/* Adds its layers one by one; they remember it, for files. */
static hpct_status add_nested(const level *outer, const json_t *entry, const int *inputs,
                              int num_inputs, const hpct_keras_call *c)
{
    reader *r = outer->reader;
    hpct_model *model = r->model;
    int first = model->num_layers;
    level l = {.reader = r, .outer = outer, .config = json_object_get(entry, "config")};
    HPCT_TRY(check_nested(entry, num_inputs));
    l.inference = outer->inference || (c != NULL && c->inference);
    hpct_model_set_head(model, inputs[0]);
    l.nest = hpct_model_add_nest(model, hpct_keras_name_of(entry), hpct_keras_is_sequential(entry),
                                 outer->nest);
    hpct_status status = l.nest > 0 ? read_level(&l, hpct_keras_is_sequential(entry))
                                    : hpct_keras_model_status(model);
    free(l.outputs);
    HPCT_TRY(status);
    model->nests[l.nest - 1].output = hpct_model_head(model);
    if (model->num_layers == first)
        return hpct_fail(HPCT_ERR_DATA, "it has no layer besides its input");
    return json_is_false(json_object_get(l.config, "trainable")) ? check_frozen(r, first) : HPCT_OK;
}

/* `c`: as hpct_keras_add_layer has it. */
static hpct_status add_layer_or_nested(const level *l, const json_t *entry, const int *inputs,
                                       int num_inputs, const hpct_keras_call *c)
{
    if (!hpct_keras_is_model(entry))
        return hpct_keras_add_layer(l, entry, inputs, num_inputs, c);
    hpct_status status = add_nested(l, entry, inputs, num_inputs, c);
    return status == HPCT_OK ? HPCT_OK : within_layer(status, entry);
}

/* ---- Sequential ---- */

static hpct_status read_sequential(level *l)
{
    const json_t *first = json_array_get(l->layers, 0);
    size_t at = is_input(first) ? 1 : 0;
    HPCT_TRY(at == 1 ? read_input_layer(l, first) : begin_level(l, input_shape_of(l->config)));
    for (; at < l->num_layers; at++) {
        int head = hpct_model_head(l->reader->model);
        HPCT_TRY(add_layer_or_nested(l, json_array_get(l->layers, at), &head, 1, NULL));
    }
    return HPCT_OK;
}

/* ---- Functional ---- */

/* Adds the layer if all its inputs exist; *added: whether they do. */
static hpct_status try_layer(level *l, size_t index, bool *added)
{
    hpct_keras_call c;
    int tensors[HPCT_KERAS_MAX_INPUTS];
    const json_t *entry = json_array_get(l->layers, index);
    hpct_status status = hpct_keras_read_call(l, entry, &c);
    if (status != HPCT_OK)
        return within_layer(status, entry);
    for (int i = 0; i < c.count; i++) {
        tensors[i] = c.inputs[i]->tensor;
        if (tensors[i] < 0)
            return HPCT_OK;
    }
    for (int i = 0; i < c.count; i++)
        c.inputs[i]->read = true;
    status = add_layer_or_nested(l, entry, tensors, c.count, &c);
    l->outputs[index].tensor = status == HPCT_OK ? hpct_model_head(l->reader->model) : -1;
    *added = true;
    return status;
}

/* Keras writes layers in topological order; any other order only takes more rounds. */
static hpct_status add_layers(level *l)
{
    size_t left = 0;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < l->num_layers; i++)
        left += l->outputs[i].tensor < 0;
    while (left > 0 && status == HPCT_OK) {
        size_t before = left;
        for (size_t i = 0; i < l->num_layers && status == HPCT_OK; i++) {
            bool added = false;
            if (l->outputs[i].tensor < 0)
                status = try_layer(l, i, &added);
            left -= added;
        }
        if (left == before && status == HPCT_OK)
            return hpct_fail(HPCT_ERR_DATA, "%zu of its layers form a cycle", left);
    }
    return status;
}

/* [name, 0, 0], or a list or dictionary with one of them. */
static hpct_status find_end(level *l, const char *what, output **found)
{
    json_t *list = json_object_get(l->config, what);
    if (json_is_string(json_array_get(list, 0)))
        return hpct_keras_find_tensor(l, found, list);
    size_t count = json_is_object(list) ? json_object_size(list) : json_array_size(list);
    if (count != 1)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: it has %zu, but only models with one input and one "
                         "output are supported",
                         what, count);
    return hpct_keras_find_tensor(l, found,
                                  json_is_object(list)
                                      ? json_object_iter_value(json_object_iter(list))
                                      : json_array_get(list, 0));
}

static hpct_status check_readers(level *l, const output *end)
{
    for (size_t i = 0; i < l->num_layers; i++) {
        const output *o = &l->outputs[i];
        if (!o->read && o != end)
            return hpct_fail(HPCT_ERR_DATA, "layer \"%.63s\" does not lead to the model's output",
                             o->name);
    }
    return HPCT_OK;
}

static hpct_status make_outputs(level *l)
{
    l->outputs = calloc(l->num_layers, sizeof *l->outputs);
    if (l->outputs == NULL)
        return hpct_fail_memory(l->num_layers * sizeof *l->outputs);
    for (size_t i = 0; i < l->num_layers; i++) {
        const char *name = hpct_keras_name_of(json_array_get(l->layers, i));
        l->outputs[i] = (output){.name = name, .tensor = -1};
    }
    return HPCT_OK;
}

static hpct_status read_functional(level *l)
{
    output *input = NULL, *end = NULL;
    HPCT_TRY(make_outputs(l));
    HPCT_TRY(find_end(l, "input_layers", &input));
    HPCT_TRY(find_end(l, "output_layers", &end));
    const json_t *first = json_array_get(l->layers, (size_t) (input - l->outputs));
    if (!is_input(first))
        return hpct_fail(HPCT_ERR_DATA, "its input layer \"%.63s\" is not an InputLayer",
                         input->name);
    HPCT_TRY(read_input_layer(l, first));
    input->tensor = hpct_model_head(l->reader->model);
    hpct_status status = add_layers(l);
    if (status == HPCT_OK)
        status = check_readers(l, end);
    if (status == HPCT_OK)
        hpct_model_set_head(l->reader->model, end->tensor);
    return status;
}

/* ---- levels ---- */

/* Names, which must differ within a model. */
static hpct_status check_names(const level *l)
{
    json_t *names = json_object();
    hpct_status status = names != NULL ? HPCT_OK : hpct_fail_memory(0);
    for (size_t i = 0; i < l->num_layers && status == HPCT_OK; i++) {
        const json_t *entry = json_array_get(l->layers, i);
        const char *name = hpct_keras_name_of(entry), *beside = hpct_keras_text(entry, "name");
        if (beside != NULL && strcmp(beside, name) != 0)
            status = hpct_fail(HPCT_ERR_DATA, "a layer has two names, \"%.63s\" and \"%.63s\"",
                               beside, name);
        else if (name[0] != '\0' && json_object_get(names, name) != NULL)
            status = hpct_fail(HPCT_ERR_DATA, "two layers are called \"%.63s\"", name);
        else if (json_object_set_new(names, name, json_true()) != 0)
            status = hpct_fail_memory(0);
    }
    json_decref(names);
    return status;
}

static hpct_status read_level(level *l, bool sequential)
{
    l->layers = hpct_keras_layers_of(l->config);
    l->num_layers = json_array_size(l->layers);
    if (l->num_layers == 0 || l->num_layers > MAX_LAYERS)
        return hpct_fail(HPCT_ERR_DATA, "it has %zu layers, but there must be 1 to %d",
                         l->num_layers, MAX_LAYERS);
    HPCT_TRY(check_names(l));
    return sequential ? read_sequential(l) : read_functional(l);
}

/* Counts the layers of each name in a model and those nested in it, inputs left out. */
static hpct_status count_names(json_t *names, const json_t *layers, int depth)
{
    hpct_status status = HPCT_OK;
    if (depth > MAX_DEPTH)
        return hpct_fail(HPCT_ERR_DATA, "models are nested more than %d times", MAX_DEPTH);
    for (size_t i = 0; i < json_array_size(layers) && status == HPCT_OK; i++) {
        const json_t *entry = json_array_get(layers, i);
        const char *name = hpct_keras_name_of(entry);
        json_int_t count = json_integer_value(json_object_get(names, name));
        if (!is_input(entry) && json_object_set_new(names, name, json_integer(count + 1)) != 0)
            status = hpct_fail_memory(0);
        if (status == HPCT_OK && hpct_keras_is_model(entry))
            status = count_names(names, hpct_keras_layers_of(json_object_get(entry, "config")),
                                 depth + 1);
    }
    return status;
}

/* ---- model ---- */

/* The error for a document that is not a model, though it may contain one. */
static hpct_status refuse_root(const json_t *root)
{
    const char *class_name = hpct_keras_class_of(root);
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
        has |= json_object_get(config, key) != NULL || has_key(hpct_keras_layers_of(config), key);
    }
    return has;
}

/* Keras 3 does not write its version here, and nor does an archive of Keras 2.12 and later: then
 * the shape of the input tells. */
static int find_generation(const json_t *root, const json_t *layers)
{
    const char *version = hpct_keras_text(root, "keras_version"),
               *module = hpct_keras_text(root, "module");
    if (version != NULL && version[0] >= '1' && version[0] <= '9')
        return strtol(version, NULL, 10) < 3 ? 2 : 3;
    if (module != NULL && strncmp(module, "tf_keras", 8) == 0)
        return 2;
    bool earlier = has_key(layers, "batch_input_shape"), later = has_key(layers, "batch_shape");
    return earlier == later ? 0 : earlier ? 2 : 3;
}

static hpct_status read_root(level *l, const json_t *root)
{
    const char *class_name = hpct_keras_class_of(root);
    bool functional = strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0;
    if (!functional && !hpct_keras_is_sequential(root))
        return refuse_root(root);
    if (!hpct_keras_is_own(root))
        return hpct_fail(HPCT_ERR_DATA, "its class %.63s is not Keras' own", class_name);
    const json_t *trainable = json_object_get(l->config, "trainable");
    if (trainable != NULL && !json_is_boolean(trainable))
        return hpct_fail(HPCT_ERR_DATA, "trainable must be true or false");
    const json_t *layers = hpct_keras_layers_of(l->config);
    HPCT_TRY(count_names(l->reader->names, layers, 0));
    l->reader->generation = find_generation(root, layers);
    HPCT_TRY(hpct_keras_check_classes(layers));
    return read_level(l, !functional);
}

/* What the model's own settings say of its layers. */
static hpct_status finish_model(hpct_model *model, const json_t *config)
{
    bool frozen = json_is_false(json_object_get(config, "trainable"));
    for (int i = 0; i < model->num_layers && frozen; i++)
        hpct_layer_freeze(model, i, true); /* none of its weights is trained */
    if (model->num_layers == 0)
        return hpct_fail(HPCT_ERR_DATA, "it has no layer besides its input");
    for (int i = 0; i < model->num_layers && model->precision == HPCT_FP32; i++)
        model->layers[i].fp32 = false; /* equal for all: --precision may change it */
    return HPCT_OK;
}

static hpct_status read_model(reader *r, const json_t *root)
{
    level l = {.reader = r, .config = json_object_get(root, "config")};
    r->names = json_object();
    hpct_status status = r->names != NULL ? read_root(&l, root) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = finish_model(r->model, l.config);
    free(l.outputs);
    json_decref(r->names);
    return status;
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
        return hpct_fail(
            HPCT_ERR_DATA,
            "line %d: %s: not the JSON of a model, which model.to_json() of Keras gives "
            "in Python: write that to a file, and name the file",
            error.line, error.text);
    hpct_status status = read_model(&r, root);
    if (status == HPCT_OK)
        *out = r.model;
    else
        hpct_model_free(r.model);
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
