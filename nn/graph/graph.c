/* Adds layers to the graph; the first error is kept for compile. */
#include "nn/graph/graph.h"

#include "base/status.h"
#include "nn/graph/hold.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Keeps hpct_last_error's message as the model's. */
static void keep_failure(hpct_model *model, hpct_status status)
{
    if (model->status != HPCT_OK)
        return;
    model->status = status;
    model->message = strdup(hpct_last_error()); /* NULL: compile then says "out of memory" */
}

void hpct_layer_fail(hpct_model *model, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *layer = model->num_layers > 0 ? model->layers[model->num_layers - 1].name : "input";
    hpct_fail(HPCT_ERR_USAGE, "%s: %s", layer, text);
    keep_failure(model, HPCT_ERR_USAGE);
}

/* Extends an array by one zeroed element; NULL, and the model fails, if out of memory. */
static void *grow(hpct_model *model, void **array, int *count, size_t size)
{
    size_t bytes = ((size_t) *count + 1) * size;
    char *grown = realloc(*array, bytes);
    if (grown == NULL) {
        keep_failure(model, hpct_fail_memory(bytes));
        return NULL;
    }
    *array = grown;
    void *element = grown + (size_t) *count * size;
    memset(element, 0, size);
    (*count)++;
    return element;
}
#define GROW(model, array, count)                                                                  \
    grow(model, (void **) &(model)->array, &(model)->count, sizeof *(model)->array)

int hpct_model_add_nest(hpct_model *model, const char *name, bool sequential, int outer)
{
    hpct_graph_nest *nest = GROW(model, nests, num_nests);
    if (nest == NULL)
        return 0;
    snprintf(nest->name, sizeof nest->name, "%s", name);
    nest->sequential = sequential;
    nest->outer = outer;
    nest->input = nest->output = model->output;
    return model->num_nests;
}

static int add_tensor(hpct_model *model, const hpct_shape *shape)
{
    hpct_graph_tensor *tensor = GROW(model, tensors, num_tensors);
    if (tensor == NULL)
        return -1;
    tensor->shape = *shape;
    tensor->root = model->num_tensors - 1;
    tensor->layer = model->num_layers - 1;
    return tensor->root;
}

/* Makes `tensor` the output of the current layer and the model. */
static void set_output(hpct_model *model, int tensor)
{
    hpct_layer *layer = &model->layers[model->num_layers - 1];
    model->output = layer->tensor = tensor;
    layer->output = model->tensors[tensor].shape;
}

int hpct_model_head(const hpct_model *model)
{
    return model->output;
}

void hpct_model_set_head(hpct_model *model, int tensor)
{
    if (tensor >= 0 && tensor < model->num_tensors)
        model->output = tensor;
    else
        hpct_layer_fail(model, "the layer after it cannot read tensor %d: there is none", tensor);
}

hpct_model *hpct_model_new(const char *name, hpct_shape input)
{
    hpct_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return NULL;
    model->name = strdup(name != NULL ? name : "model");
    if (model->name == NULL || add_tensor(model, &input) < 0) {
        hpct_model_free(model);
        return NULL;
    }
    if (!hpct_graph_shape_valid(&input))
        hpct_layer_fail(model,
                        "the shape needs 1 to %d positive sizes and fewer than 2^31 elements",
                        HPCT_MAX_RANK);
    return model;
}

void hpct_model_drop_slots(hpct_model *model)
{
    model->steps = 0;
    model->scaling = (hpct_graph_loss_scaling) HPCT_GRAPH_LOSS_SCALING_BEGIN;
    for (int i = 0; i < model->num_params; i++) {
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++) {
            free(model->params[i].slot[k]);
            model->params[i].slot[k] = NULL;
        }
    }
}

void hpct_model_hold(hpct_model *model)
{
    model->holders++;
}

void hpct_model_let_go(hpct_model *model)
{
    if (--model->holders == 0 && model->freed)
        hpct_model_free(model);
}

void hpct_model_free(hpct_model *model)
{
    if (model == NULL)
        return;
    model->freed = true;
    if (model->holders > 0)
        return;
    if (model->run != NULL)
        model->run_class->free(model->run);
    for (int i = 0; i < model->num_params; i++) {
        free(model->params[i].value);
        for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++)
            free(model->params[i].slot[k]);
    }
    free(model->params);
    free(model->layers);
    free(model->nests);
    free(model->tensors);
    free(model->nodes);
    free(model->message);
    free(model->class_names);
    free(model->trained_with);
    free(model->class_weights);
    free(model->name);
    free(model);
}

void hpct_model_name_layer(hpct_model *model, const char *name)
{
    if (strlen(name) >= HPCT_GRAPH_NAME_SIZE || name[0] == '\0') {
        hpct_layer_fail(model, "the next layer's name \"%s\" must have 1 to %d characters", name,
                        HPCT_GRAPH_NAME_SIZE - 1);
        return;
    }
    snprintf(model->next_name, sizeof model->next_name, "%s", name);
}

/* By the user; else by type, numbered as in Keras: dense, dense_1, dense_2. */
static void name_layer(hpct_model *model, hpct_layer *layer, const char *type, const char *stem)
{
    int same = 0;
    layer->named = model->next_name[0] != '\0';
    for (const hpct_layer *other = model->layers; other < layer; other++)
        same += !other->named && strcmp(other->type, type) == 0;
    if (layer->named)
        snprintf(layer->name, sizeof layer->name, "%s", model->next_name);
    else if (same == 0)
        snprintf(layer->name, sizeof layer->name, "%s", stem);
    else
        snprintf(layer->name, sizeof layer->name, "%s_%d", stem, same);
    model->next_name[0] = '\0';
    for (const hpct_layer *other = model->layers; other < layer; other++) {
        if (strcmp(other->name, layer->name) == 0) {
            hpct_layer_fail(model, "there is a layer of this name already");
            return;
        }
    }
}

static bool begin(hpct_model *model, const char *type, const char *stem)
{
    if (model->status == HPCT_OK && model->compiled)
        keep_failure(model, hpct_fail(HPCT_ERR_USAGE,
                                      "%s: the model is compiled already; add %s before that",
                                      model->name, stem));
    if (model->status != HPCT_OK)
        return false;
    hpct_layer *layer = GROW(model, layers, num_layers);
    if (layer == NULL)
        return false;
    layer->type = type;
    name_layer(model, layer, type, stem);
    return model->status == HPCT_OK;
}

bool hpct_layer_begin(hpct_model *model, const char *type, const char *stem, hpct_shape *input)
{
    if (!begin(model, type, stem))
        return false;
    hpct_layer *layer = &model->layers[model->num_layers - 1];
    layer->num_inputs = 1;
    layer->inputs[0] = layer->tensor = model->output;
    layer->output = *input = model->tensors[model->output].shape;
    return true;
}

bool hpct_layer_begin_join(hpct_model *model, const char *type, const char *stem,
                           const int *tensors, int count)
{
    if (!begin(model, type, stem))
        return false;
    if (count < 2 || count > HPCT_GRAPH_NODE_MAX_INPUTS) {
        hpct_layer_fail(model, "it joins 2 to %d tensors, not %d", HPCT_GRAPH_NODE_MAX_INPUTS,
                        count);
        return false;
    }
    hpct_layer *layer = &model->layers[model->num_layers - 1];
    layer->num_inputs = count;
    for (int k = 0; k < count; k++) {
        if (tensors[k] < 0 || tensors[k] >= model->num_tensors) {
            hpct_layer_fail(model, "there is no tensor %d", tensors[k]);
            return false;
        }
        layer->inputs[k] = tensors[k];
    }
    return true;
}

bool hpct_layer_add_join(hpct_model *model, const hpct_op_spec *spec, const int *tensors, int count,
                         const hpct_shape *output)
{
    if (model->status != HPCT_OK)
        return false;
    if (!hpct_graph_shape_valid(output)) {
        hpct_layer_fail(model, "its output would have 2^31 elements or more");
        return false;
    }
    int tensor = add_tensor(model, output);
    hpct_graph_node *node = tensor < 0 ? NULL : GROW(model, nodes, num_nodes);
    if (node == NULL)
        return false;
    node->spec = *spec;
    node->num_inputs = count;
    for (int k = 0; k < count; k++) {
        node->inputs[k] = tensors[k];
        model->tensors[tensors[k]].read = true;
        model->tensors[tensor].weighted |= model->tensors[tensors[k]].weighted;
    }
    node->output = tensor;
    node->layer = model->num_layers - 1;
    node->first_param = model->num_params;
    set_output(model, tensor);
    return true;
}

bool hpct_layer_add_node(hpct_model *model, const hpct_op_spec *spec, const hpct_shape *output)
{
    return hpct_layer_add_join(model, spec, &model->output, 1, output);
}

bool hpct_layer_add_param(hpct_model *model, const char *name, const hpct_shape *shape,
                          hpct_graph_initializer initializer, double fan_in, double fan_out)
{
    if (model->status != HPCT_OK)
        return false;
    hpct_layer *layer = &model->layers[model->num_layers - 1];
    if (shape->rank > 0 && !hpct_graph_shape_valid(shape)) {
        hpct_layer_fail(model, "its %s would have 2^31 elements or more", name);
        return false;
    }
    hpct_graph_param *param = GROW(model, params, num_params);
    if (param == NULL)
        return false;
    snprintf(param->name, sizeof param->name, "%s/%s", layer->name, name);
    param->shape = *shape;
    param->initializer = initializer;
    param->fan_in = fan_in;
    param->fan_out = fan_out;
    param->node = model->num_nodes - 1;
    param->index = model->nodes[param->node].num_params++;
    param->state = hpct_op_param_is_state(&model->nodes[param->node].spec, param->index);
    param->frozen = hpct_graph_param_is_fixed(model, param);
    model->tensors[model->nodes[param->node].output].weighted |= !param->state;
    layer->parameters += hpct_graph_shape_count(shape);
    layer->states += param->state ? hpct_graph_shape_count(shape) : 0;
    return true;
}

bool hpct_layer_add_view(hpct_model *model, const hpct_shape *output)
{
    if (model->status != HPCT_OK)
        return false;
    int source = model->output;
    int tensor = add_tensor(model, output);
    if (tensor < 0)
        return false;
    model->tensors[tensor].root = model->tensors[source].root;
    model->tensors[tensor].weighted = model->tensors[source].weighted;
    model->tensors[source].read = true;
    set_output(model, tensor);
    return true;
}
