/* Writes a model as Keras 3's JSON: Sequential if each layer reads the one before it, else
 * Functional. Layers keep their names, initializers and order. */
#include "nn/file/keras/initializers.h"
#include "nn/file/keras/keras.h"
#include "nn/file/keras/order.h"
#include "nn/file/keras/regularizers.h"

#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Of the model, or of one nested in it. */
typedef struct writer {
    const hpct_model *model;
    int nest;                         /* number of the nested model; 0: none */
    char input[HPCT_GRAPH_NAME_SIZE]; /* name of the input layer */
    json_t *layers;                   /* the list so far */
    hpct_status status;
} writer;

/* [null, 28, 28, 1] */
static json_t *batch_shape(const hpct_shape *shape)
{
    json_t *sizes = json_pack("[n]");
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(sizes, json_integer(shape->size[i]));
    return sizes;
}

/* An object in Keras' serialization; takes ownership of `config`. Functional has a registered name
 * and no public module, the others the reverse. */
static json_t *object(const char *module, const char *class_name, json_t *config)
{
    bool functional = strcmp(class_name, "Functional") == 0;
    return json_pack("{s:s, s:s, s:o, s:s?}", "module", module, "class_name", class_name, "config",
                     config, "registered_name", functional ? class_name : NULL);
}

/* Adds "kernel_initializer" etc.; depthwise and pointwise kernels' have other names in Keras. */
static void add_initializers(const writer *w, int layer, json_t *config)
{
    const hpct_model *model = w->model;
    for (int p = 0; p < model->num_params; p++) {
        const hpct_graph_param *param = &model->params[p];
        char key[64];
        const char *what = strrchr(param->name, '/') + 1;
        if (model->nodes[param->node].layer != layer ||
            strcmp(model->layers[layer].type, "Normalization") == 0) /* has none */
            continue;
        if (strcmp(what, "kernel") == 0 && strncmp(model->layers[layer].type, "Depthwise", 9) == 0)
            what = "depthwise";
        if (strcmp(model->layers[layer].type, "LayerScale") == 0) /* has init_values */
            continue;
        snprintf(key, sizeof key, "%.*s_initializer", hpct_keras_initialized(what), what);
        json_object_set_new(config, key, hpct_keras_initializer(param));
    }
}

/* Adds "kernel_regularizer" etc. of the parameters that have one. */
static void add_regularizers(const writer *w, int layer, json_t *config)
{
    const hpct_model *model = w->model;
    for (int p = 0; p < model->num_params; p++) {
        const hpct_graph_param *param = &model->params[p];
        char key[32];
        if (model->nodes[param->node].layer != layer || (param->l1 <= 0 && param->l2 <= 0))
            continue;
        json_t *value = hpct_keras_regularizer(model, param, key);
        json_object_set_new(config, key, value);
    }
}

static const char *own_name(const hpct_layer *layer)
{
    return layer->name + layer->own_name;
}

/* The layer that produces a tensor, as its readers in this model see it. */
static const char *name_of(const writer *w, int tensor)
{
    const hpct_model *model = w->model;
    int layer = model->tensors[tensor].layer;
    int nest = layer >= 0 ? hpct_keras_nest_at(model, w->nest, layer) : -1;
    return nest < 0   ? w->input
           : nest > 0 ? model->nests[nest - 1].name
                      : own_name(&model->layers[layer]);
}

/* A reference to an input tensor, by the layer that produces it. */
static json_t *reference(const writer *w, int tensor)
{
    const hpct_model *model = w->model;
    const char *name = name_of(w, tensor);
    json_t *config =
        json_pack("{s:o, s:s, s:[s,i,i]}", "shape", batch_shape(&model->tensors[tensor].shape),
                  "dtype", "float32", "keras_history", name, 0, 0);
    return json_pack("{s:s, s:o}", "class_name", "__keras_tensor__", "config", config);
}

/* Keras calls a layer with several inputs with a list. */
static json_t *inbound(const writer *w, const int *inputs, int count)
{
    if (count == 1)
        return json_pack("[{s:[o], s:{}}]", "args", reference(w, inputs[0]), "kwargs");
    json_t *tensors = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(tensors, reference(w, inputs[i]));
    return json_pack("[{s:[o], s:{}}]", "args", tensors, "kwargs");
}

static void append(writer *w, json_t *entry, const char *name, json_t *calls)
{
    if (calls != NULL) {
        json_object_set_new(entry, "name", json_string(name));
        json_object_set_new(entry, "inbound_nodes", calls);
    }
    if (entry == NULL || json_array_append_new(w->layers, entry) != 0)
        w->status = hpct_fail_memory(0);
}

static json_t *policy(const hpct_model *model, const hpct_layer *layer)
{
    if (model->precision == HPCT_FP32 || layer->fp32)
        return json_string("float32");
    return object("keras", "DTypePolicy",
                  json_pack("{s:s}", "name", hpct_precision_policy(model->precision)));
}

static void write_layer(writer *w, int index, bool functional)
{
    const hpct_layer *layer = &w->model->layers[index];
    const hpct_keras_class *class = hpct_keras_find(layer->type);
    if (class == NULL) {
        w->status = hpct_fail(HPCT_ERR_USAGE, "layer %s (%s) cannot be written for Keras",
                              layer->name, layer->type);
        return;
    }
    json_t *config = hpct_keras_settings(layer);
    if (config == NULL) {
        w->status = hpct_fail_memory(0);
        return;
    }
    json_object_set_new(config, "name", json_string(own_name(layer)));
    json_object_set_new(config, "trainable", json_boolean(!layer->frozen));
    if (strcmp(layer->type, "SpatialDropout2D") == 0) /* whose constructor does not know it */
        json_object_del(config, "trainable");
    json_object_set_new(config, "dtype", policy(w->model, layer));
    add_initializers(w, index, config);
    add_regularizers(w, index, config);
    append(w, object(class->module != NULL ? class->module : "keras.layers", layer->type, config),
           own_name(layer), functional ? inbound(w, layer->inputs, layer->num_inputs) : NULL);
}

static void write_input(writer *w, int tensor, const char *name, bool functional)
{
    json_t *config =
        json_pack("{s:o, s:s, s:s}", "batch_shape", batch_shape(&w->model->tensors[tensor].shape),
                  "dtype", "float32", "name", name);
    append(w, object("keras.layers", "InputLayer", config), name, functional ? json_array() : NULL);
}

/* Whether all layers of a nested model that have parameters are frozen. */
static bool is_frozen(const hpct_model *model, const int *order, int count)
{
    int learning = 0, frozen = 0;
    for (int i = 0; i < count; i++) {
        const hpct_layer *layer = &model->layers[order[i]];
        learning += layer->parameters > 0 && !layer->frozen;
        frozen += layer->parameters > 0 && layer->frozen;
    }
    return frozen > 0 && learning == 0;
}

static bool is_taken(const writer *w, const char *name)
{
    const hpct_model *model = w->model;
    for (int i = 0; i < model->num_layers; i++) {
        if (model->layers[i].nest == w->nest && strcmp(own_name(&model->layers[i]), name) == 0)
            return true;
    }
    for (int i = 0; i < model->num_nests; i++) {
        if (model->nests[i].outer == w->nest && strcmp(model->nests[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Sets an input name that no layer has. */
static void name_input(writer *w)
{
    snprintf(w->input, sizeof w->input, "input_layer");
    for (int i = 1; is_taken(w, w->input); i++)
        snprintf(w->input, sizeof w->input, "input_layer_%d", i);
}

static json_t *write_level(writer *w, const char *name, bool trainable, bool functional,
                           const int *order, int count);

/* A nested model: `count` layers from order[0] on. */
static void write_nested(writer *w, int number, const int *order, int count, bool functional)
{
    const hpct_graph_nest *nest = &w->model->nests[number - 1];
    writer inner = {.model = w->model, .nest = number, .layers = json_array()};
    bool frozen = is_frozen(w->model, order, count);
    json_t *entry = write_level(&inner, nest->name, !frozen, !nest->sequential, order, count);
    w->status = inner.status;
    json_decref(inner.layers);
    append(w, entry, nest->name, functional ? inbound(w, &nest->input, 1) : NULL);
}

/* The layers in Keras' order, from the first on. */
static void write_layers(writer *w, const int *order, int count, bool functional)
{
    for (int i = 0, own = 1; i < count && w->status == HPCT_OK; i += own) {
        int nest = hpct_keras_nest_at(w->model, w->nest, order[i]);
        for (own = 1; nest > 0 && i + own < count; own++) {
            if (hpct_keras_nest_at(w->model, w->nest, order[i + own]) != nest)
                break;
        }
        if (nest == 0)
            write_layer(w, order[i], functional);
        else
            write_nested(w, nest, order + i, own, functional);
    }
}

/* Whether a tensor is that of a nested functional model, whose own graph Keras counts as its first
 * call in output_layers. */
static bool counts_graph(const writer *w, int tensor)
{
    const hpct_model *model = w->model;
    int layer = model->tensors[tensor].layer;
    int nest = layer >= 0 ? hpct_keras_nest_at(model, w->nest, layer) : -1;
    return nest > 0 && !model->nests[nest - 1].sequential;
}

static json_t *write_level(writer *w, const char *name, bool trainable, bool functional,
                           const int *order, int count)
{
    const hpct_model *model = w->model;
    const hpct_graph_nest *nest = w->nest > 0 ? &model->nests[w->nest - 1] : NULL;
    name_input(w);
    write_input(w, nest != NULL ? nest->input : 0, w->input, functional);
    write_layers(w, order, count, functional);
    json_t *config =
        json_pack("{s:s, s:b, s:O}", "name", name, "trainable", trainable, "layers", w->layers);
    if (!functional)
        return object("keras", "Sequential", config);
    int output = nest != NULL ? nest->output : model->output;
    json_object_set_new(config, "input_layers", json_pack("[s,i,i]", w->input, 0, 0));
    json_object_set_new(config, "output_layers",
                        json_pack("[s,i,i]", name_of(w, output), counts_graph(w, output), 0));
    return object("keras.src.models.functional", "Functional", config);
}

/* Whether each layer or nested model reads the one before it. */
static bool is_chain(const hpct_model *model)
{
    int before = 0;
    for (int i = 0; i < model->num_layers; i++) {
        const hpct_layer *layer = &model->layers[i];
        int nest = hpct_keras_nest_at(model, 0, i);
        if (nest > 0 && i > 0 && hpct_keras_nest_at(model, 0, i - 1) == nest)
            continue;
        int reads = nest > 0 ? model->nests[nest - 1].input : layer->inputs[0];
        if (reads != before || (nest == 0 && layer->num_inputs != 1))
            return false;
        before = nest > 0 ? model->nests[nest - 1].output : layer->tensor;
    }
    return model->num_layers > 0 && model->output == before;
}

static json_t *write_model(writer *w)
{
    const hpct_model *model = w->model;
    json_t *root = NULL;
    int *order = calloc((size_t) model->num_layers + 1, sizeof *order);
    w->status = order != NULL ? hpct_keras_order(model, order) : hpct_fail_memory(0);
    if (w->status == HPCT_OK)
        root = write_level(w, model->name, true, !is_chain(model), order, model->num_layers);
    free(order);
    return root;
}

typedef struct text_file {
    const char *text, *path;
} text_file;

static hpct_status write_text(void *arg, int fd)
{
    const text_file *file = arg;
    HPCT_TRY(hpct_file_write_all(fd, file->text, strlen(file->text), file->path));
    return hpct_file_write_all(fd, "\n", 1, file->path);
}

hpct_status hpct_keras_write(char **text, const hpct_model *model)
{
    writer w = {.model = model, .layers = json_array()};
    if (model->status != HPCT_OK)
        return hpct_fail(model->status, "%s",
                         model->message != NULL ? model->message : "out of memory");
    json_t *root = write_model(&w);
    *text = w.status == HPCT_OK && root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    if (w.status == HPCT_OK && *text == NULL)
        w.status = hpct_fail_memory(0);
    json_decref(root);
    json_decref(w.layers);
    return w.status;
}

hpct_status hpct_model_save_json(const hpct_model *model, const char *path)
{
    char *text;
    HPCT_TRY(hpct_keras_write(&text, model));
    hpct_status status = hpct_output_replace(path, write_text, &(text_file){text, path});
    free(text);
    return status;
}
