/* Groups of a model's layers in Keras' files. */
#include "nn/file/keras/groups_h5.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef hpct_keras_h5_group group;

static int layer_of(const hpct_model *model, int param)
{
    return model->nodes[model->params[param].node].layer;
}

/* "conv2d" for the first of a class, then "conv2d_1". */
static void number(char *name, size_t size, const char *stem, int same)
{
    if (same == 0)
        snprintf(name, size, "%s", stem);
    else
        snprintf(name, size, "%s_%d", stem, same);
}

/* The layers before the i-th of its class and in its nested model. */
static int count_same(const hpct_model *model, const int *order, size_t i)
{
    const hpct_layer *layer = &model->layers[order[i]];
    int same = 0;
    for (size_t k = 0; k < i; k++) {
        const hpct_layer *other = &model->layers[order[k]];
        same += strcmp(other->type, layer->type) == 0 && other->nest == layer->nest;
    }
    return same;
}

/* Names the groups of the nested models that a layer is in, unless they have names: numbered by
 * class within the one they are in. */
static void name_nest(const hpct_model *model, group *nests, int number_of, const char *layers)
{
    const hpct_graph_nest *nest = &model->nests[number_of - 1];
    char own[HPCT_KERAS_STEM_SIZE];
    int same = 0;
    if (nests[number_of - 1].name[0] != '\0')
        return;
    if (nest->outer > 0)
        name_nest(model, nests, nest->outer, layers);
    for (int k = 0; k < model->num_nests; k++) {
        const hpct_graph_nest *other = &model->nests[k];
        same += nests[k].name[0] != '\0' && other->outer == nest->outer &&
                other->sequential == nest->sequential;
    }
    number(own, sizeof own, nest->sequential ? "sequential" : "functional", same);
    snprintf(nests[number_of - 1].name, sizeof nests->name, "%.330s%.40s%.75s",
             nest->outer > 0 ? nests[nest->outer - 1].name : "", nest->outer > 0 ? layers : "",
             own);
}

static void name_group(const hpct_model *model, const int *order, size_t i, group *groups,
                       const char *layers)
{
    char stem[HPCT_KERAS_STEM_SIZE], own[HPCT_KERAS_STEM_SIZE + 12];
    const hpct_layer *layer = &model->layers[order[i]];
    group *nests = groups + model->num_layers;
    hpct_keras_stem(layer->type, stem);
    number(own, sizeof own, stem, count_same(model, order, i));
    if (layer->nest > 0)
        name_nest(model, nests, layer->nest, layers);
    snprintf(groups[i].name, sizeof groups[i].name, "%.330s%.40s%.75s",
             layer->nest > 0 ? nests[layer->nest - 1].name : "", layer->nest > 0 ? layers : "",
             own);
}

hpct_status hpct_keras_h5_list_groups(const hpct_model *model, const char *top, group **out)
{
    size_t count = (size_t) model->num_layers, all = count + (size_t) model->num_nests;
    char layers[64];
    group *groups = calloc(all + 1, sizeof *groups);
    int *order = calloc(count + 1, sizeof *order);
    hpct_status status = groups != NULL && order != NULL ? HPCT_OK : hpct_fail_memory(0);
    snprintf(layers, sizeof layers, "/%s/", top);
    if (status == HPCT_OK)
        status = hpct_keras_order(model, order);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        groups[i].layer = order[i];
        name_group(model, order, i, groups, layers);
        for (int p = 0; p < model->num_params; p++)
            groups[i].num_params += layer_of(model, p) == order[i];
    }
    free(order);
    if (status == HPCT_OK)
        *out = groups;
    else
        free(groups);
    return status;
}

int hpct_keras_h5_param_of(const hpct_model *model, int layer, int which)
{
    for (int state = 0; state < 2; state++) {
        for (int p = 0; p < model->num_params; p++) {
            bool moving = hpct_graph_param_is_statistic(model, &model->params[p]);
            if (layer_of(model, p) == layer && moving == (state == 1) && which-- == 0)
                return p;
        }
    }
    return -1;
}
