/* Reads one layer of a model's list. */
#include "nn/file/keras/elements.h"
#include "nn/file/keras/initializers.h"
#include "nn/file/keras/reader.h"
#include "nn/file/keras/regularizers.h"

#include "base/status.h"

#include <string.h>

static bool is_input(const json_t *entry)
{
    return strcmp(hpct_keras_class_of(entry), "InputLayer") == 0;
}

/* Name of a dtype policy: a string, or an object DTypePolicy (Keras 3) or Policy (Keras 2). Other
 * objects, e.g. quantized policies, have such names, too, and are not accepted. */
static const char *policy_name(const json_t *dtype)
{
    static const char *const classes[] = {"", "DTypePolicy", "FloatDTypePolicy", "Policy"};
    for (size_t i = 0; json_is_object(dtype) && i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(hpct_keras_class_of(dtype), classes[i]) == 0)
            return hpct_keras_text(json_object_get(dtype, "config"), "name");
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
                        name != NULL ? name : hpct_keras_class_of(dtype));
    json_decref(dtype);
}

void hpct_keras_take_common(hpct_keras_layer *layer)
{
    take_policy(layer);
    layer->frozen = !hpct_keras_bool(layer, "trainable", true);
    hpct_keras_drop(layer, "name");
    hpct_keras_drop(layer, "batch_input_shape");
}

hpct_status hpct_keras_open_layer(hpct_keras_layer *layer, const json_t *entry, hpct_model *model)
{
    const json_t *config = json_object_get(entry, "config");
    *layer = (hpct_keras_layer){.class_name = hpct_keras_class_of(entry),
                                .name = hpct_keras_name_of(entry),
                                .model = model};
    if (!json_is_object(config) || layer->class_name[0] == '\0')
        return hpct_fail(HPCT_ERR_DATA, "a layer has no class_name or no config");
    layer->settings = json_copy((json_t *) (uintptr_t) config);
    return layer->settings != NULL ? HPCT_OK : hpct_fail_memory(0);
}

void hpct_keras_close_layer(hpct_keras_layer *layer)
{
    json_decref(layer->settings);
    layer->settings = NULL;
}

hpct_status hpct_keras_model_status(const hpct_model *model)
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

/* In a call with training=False: what it draws or updates in training is off. */
static void set_inference(hpct_keras_layer *layer)
{
    const hpct_keras_class *class = hpct_keras_find(layer->class_name);
    if (class != NULL && class->rate != NULL)
        json_object_set_new(layer->settings, class->rate, json_real(0));
    if (strncmp(layer->class_name, "Random", 6) == 0)
        hpct_keras_fail(layer, "it is called with training=False, and would never change an image: "
                               "remove it");
    if (strcmp(layer->class_name, "BatchNormalization") == 0 && !layer->frozen)
        hpct_keras_fail(layer, "it is called with training=False, but its gamma and beta are "
                               "trained: not supported; set its trainable to False in Keras");
}

/* Adds what the layer's class is, after its common settings. */
static void add_class(hpct_keras_layer *layer, const json_t *entry)
{
    if (!hpct_keras_is_operation(entry)) {
        hpct_keras_add(hpct_keras_find(layer->class_name), layer);
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
    hpct_keras_take_common(layer);
    if (layer->inference)
        set_inference(layer);
    hpct_keras_take_initializers(layer, &initializers);
    hpct_keras_take_regularizers(layer, &regularizers);
    if (layer->name[0] != '\0')
        hpct_model_name_layer(layer->model, layer->whole_name);
    hpct_model_set_head(layer->model, layer->inputs[0]);
    int first = layer->model->num_layers;
    if (layer->status == HPCT_OK)
        add_class(layer, entry);
    if (layer->status == HPCT_OK)
        layer->status = hpct_keras_model_status(layer->model);
    if (layer->status == HPCT_OK)
        set_precision(layer);
    if (layer->status == HPCT_OK)
        set_frozen(layer, first);
    hpct_keras_set_initializers(layer, initializers);
    hpct_keras_set_regularizers(layer, regularizers);
}

/* All layers from `first` on are of this level; of one layer here there may be several. */
static void set_nest(const hpct_keras_level *level, const hpct_keras_layer *layer, int first)
{
    for (int i = first; i < layer->model->num_layers; i++) {
        hpct_layer *added = &layer->model->layers[i];
        added->nest = level->nest;
        added->own_name = (int) (strlen(layer->whole_name) - strlen(layer->name));
    }
}

/* "outer/inner/NAME" of a layer in a nested model, if other layers of the document have its name;
 * a name that is too long is an error when it is set. */
static void name_whole(const hpct_keras_level *level, hpct_keras_layer *layer)
{
    const hpct_model *model = level->reader->model;
    char text[sizeof layer->whole_name];
    bool alone = json_integer_value(json_object_get(level->reader->names, layer->name)) <= 1;
    snprintf(layer->whole_name, sizeof layer->whole_name, "%s", layer->name);
    for (int nest = level->nest; nest > 0 && !alone; nest = hpct_graph_nest_outer(model, nest)) {
        snprintf(text, sizeof text, "%.63s/%.190s", model->nests[nest - 1].name, layer->whole_name);
        memcpy(layer->whole_name, text, sizeof text);
    }
}

hpct_status hpct_keras_add_layer(const hpct_keras_level *level, const json_t *entry,
                                 const int *inputs, int num_inputs, const hpct_keras_call *c)
{
    hpct_keras_layer layer;
    hpct_model *model = level->reader->model;
    int first = model->num_layers;
    HPCT_TRY(hpct_keras_open_layer(&layer, entry, model));
    layer.generation = level->reader->generation;
    layer.inference = level->inference;
    if (c != NULL) {
        layer.numbers = c->numbers;
        layer.number = c->number;
        layer.number_first = c->number_first;
        layer.inference |= c->inference;
    }
    layer.num_inputs = num_inputs;
    memcpy(layer.inputs, inputs, (size_t) num_inputs * sizeof *inputs);
    name_whole(level, &layer);
    add_one(&layer, entry);
    set_nest(level, &layer, first);
    hpct_keras_close_layer(&layer);
    return layer.status;
}
