/* Matches the weights of a nested model in Keras 2's files, which are in one list. */
#include "nn/file/keras/groups_h5.h"

#include <stdlib.h>

const char *hpct_keras_h5_word(const char *weight)
{
    static const char *const words[] = {"kernel", "pointwise_kernel", "bias",           "gamma",
                                        "beta",   "moving_mean",      "moving_variance"};
    const char *tail = strrchr(weight, '/');
    tail = tail != NULL ? tail + 1 : weight;
    size_t length = strcspn(tail, ":");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == length && strncmp(words[i], tail, length) == 0)
            return words[i];
    }
    return NULL;
}

/* Of "conv2d/kernel:0", and of "base/conv2d/kernel:0", the length of "conv2d" and where it begins;
 * *whole: that of all but the last part. */
static const char *layer_of_weight(const char *weight, size_t *length, size_t *whole)
{
    const char *end = strrchr(weight, '/'), *begin = end;
    *length = *whole = 0;
    if (end == NULL)
        return weight;
    while (begin > weight && begin[-1] != '/')
        begin--;
    *length = (size_t) (end - begin);
    *whole = (size_t) (end - weight);
    return begin;
}

bool hpct_keras_h5_layer_name(const char *weight, char *name, size_t size)
{
    size_t length, whole;
    const char *own = layer_of_weight(weight, &length, &whole);
    if (length == 0 || length >= size)
        return false;
    snprintf(name, size, "%.*s", (int) length, own);
    return true;
}

/* Also by a name with slashes. */
static bool is_weight_of(const char *weight, const char *layer)
{
    size_t length, whole, size = strlen(layer);
    const char *own = layer_of_weight(weight, &length, &whole);
    return (size == length && strncmp(own, layer, size) == 0) ||
           (size == whole && strncmp(weight, layer, size) == 0);
}

/* By the layers' names: trained weights of a layer come before its states, wherever they are. */
static bool match_names(const hpct_keras_h5_list *list, int *params)
{
    size_t matched = 0;
    for (size_t i = 0; i < list->count; i++)
        params[i] = -1;
    for (int g = 0; g < list->num_groups; g++) {
        const hpct_layer *layer = &list->model->layers[list->groups[g].layer];
        int found = 0;
        for (size_t i = 0; i < list->count; i++) {
            if (!is_weight_of(list->weights[i], layer->name + layer->own_name))
                continue;
            if (params[i] >= 0 || found == list->groups[g].num_params)
                return false; /* two layers of this name */
            params[i] = hpct_keras_h5_param_of(list->model, list->groups[g].layer, found++);
            matched++;
        }
        if (found != list->groups[g].num_params)
            return false;
    }
    return matched == list->count;
}

static bool same_words(const hpct_keras_h5_list *list, const int *params)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *has = hpct_keras_h5_word(list->weights[i]),
                   *wants = hpct_keras_h5_word(list->model->params[params[i]].name);
        if (has != NULL && wants != NULL && strcmp(has, wants) != 0)
            return false;
    }
    return true;
}

typedef enum frozen { FROZEN_NONE, FROZEN_ALL, FROZEN_AS_HERE } frozen;

/* Keras' order: all trained weights, then the others; in each part layer by layer. */
static bool match_order(const hpct_keras_h5_list *list, frozen which, int *params)
{
    size_t next = 0;
    for (int part = 0; part < 2; part++) {
        for (int g = 0; g < list->num_groups; g++) {
            int layer = list->groups[g].layer;
            bool is_frozen = which == FROZEN_ALL ||
                             (which == FROZEN_AS_HERE && list->model->layers[layer].frozen);
            for (int k = 0; k < list->groups[g].num_params; k++) {
                int param = hpct_keras_h5_param_of(list->model, layer, k);
                bool other = is_frozen || hpct_graph_param_is_statistic(
                                              list->model, &list->model->params[param]);
                if (other == (part == 1))
                    params[next++] = param;
            }
        }
    }
    return same_words(list, params);
}

/* Names may be others than the model's, as Keras numbers layers in each run. Which layers were
 * frozen when it wrote the file is not in it. */
bool hpct_keras_h5_match_list(const hpct_keras_h5_list *list, int *params)
{
    return match_names(list, params) || match_order(list, FROZEN_AS_HERE, params) ||
           match_order(list, FROZEN_NONE, params) || match_order(list, FROZEN_ALL, params);
}
