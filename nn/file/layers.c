/* Settings by the table that writes Keras' JSON. */
#include "nn/file/layers.h"

#include "nn/file/keras/keras.h"

static const char *name_of(const hpct_model *model, int tensor)
{
    int layer = model->tensors[tensor].layer;
    return layer < 0 ? "input" : model->layers[layer].name;
}

static json_t *describe_layer(const hpct_model *model, const hpct_layer *layer)
{
    json_t *settings = hpct_keras_settings(layer);
    json_t *object =
        json_pack("{s:s, s:s, s:[]}", "name", layer->name, "class", layer->type, "reads");
    json_t *reads = json_object_get(object, "reads");
    for (int i = 0; i < layer->num_inputs; i++)
        json_array_append_new(reads, json_string(name_of(model, layer->inputs[i])));
    json_object_update(object, settings);
    json_decref(settings);
    return object;
}

json_t *hpct_model_describe_layers(const hpct_model *model)
{
    hpct_shape input = hpct_model_input_shape(model);
    json_t *list = json_array(), *shape = json_array();
    for (int i = 0; i < input.rank; i++)
        json_array_append_new(shape, json_integer(input.size[i]));
    int failed =
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", "input", "shape", shape));
    for (int i = 0; i < model->num_layers && failed == 0; i++)
        failed = json_array_append_new(list, describe_layer(model, &model->layers[i]));
    if (failed == 0)
        return list;
    json_decref(list);
    return NULL;
}
