/* Settings of single layers, selected by name: frozen, and a learning rate of their own. */
#include "nn/graph/compile.h"
#include "nn/graph/graph.h"

#include "base/status.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_NAMES 8 /* in an error */

typedef void (*change)(hpct_model *model, int layer, double value);

/* ---- patterns ---- */

/* The next pattern of a comma-separated list, a copy that the caller frees; advances *list. */
static char *next_pattern(const char **list)
{
    size_t length = strcspn(*list, ",");
    char *pattern = strndup(*list, length);
    *list += length + ((*list)[length] == ',');
    return pattern;
}

static bool is_nested_match(const hpct_model *model, const char *pattern, int nest)
{
    for (; nest > 0; nest = hpct_graph_nest_outer(model, nest)) {
        if (fnmatch(pattern, model->nests[nest - 1].name, 0) == 0)
            return true;
    }
    return false;
}

/* By its name, or that of a nested model that it is in. */
static bool is_match(const hpct_model *model, const char *pattern, const hpct_layer *layer)
{
    return fnmatch(pattern, layer->name, 0) == 0 || is_nested_match(model, pattern, layer->nest);
}

static hpct_status no_layer(const hpct_model *model, const char *pattern)
{
    char names[2 * SHOWN_NAMES * (HPCT_GRAPH_NAME_SIZE + 2) + 32] = "";
    size_t used = 0;
    for (int i = 0; i < model->num_nests && i < SHOWN_NAMES; i++)
        used += (size_t) snprintf(names + used, sizeof names - used, "%s, ", model->nests[i].name);
    for (int i = 0; i < model->num_layers && i < SHOWN_NAMES; i++)
        used += (size_t) snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                  model->layers[i].name);
    if (model->num_layers > SHOWN_NAMES)
        snprintf(names + used, sizeof names - used, " and %d more",
                 model->num_layers - SHOWN_NAMES);
    return hpct_fail(HPCT_ERR_USAGE, "no layer of model %s matches '%.100s'; there are: %s",
                     model->name, pattern, names);
}

/* Applies the change to the layers that match, or only checks that there are some (NULL). */
static hpct_status each_match(hpct_model *model, const char *pattern, change apply, double value)
{
    bool any = false;
    for (int i = 0; i < model->num_layers; i++) {
        if (!is_match(model, pattern, &model->layers[i]))
            continue;
        any = true;
        if (apply != NULL)
            apply(model, i, value);
    }
    return any ? HPCT_OK : no_layer(model, pattern);
}

static hpct_status each_pattern(hpct_model *model, const char *list, change apply, double value)
{
    const char *at = list;
    do {
        char *pattern = next_pattern(&at);
        if (pattern == NULL)
            return hpct_fail_memory(strlen(list));
        hpct_status status = each_match(model, pattern, apply, value);
        free(pattern);
        HPCT_TRY(status);
    } while (*at != '\0');
    return HPCT_OK;
}

/* All patterns are checked before the first change. */
static hpct_status change_layers(hpct_model *model, const char *list, change apply, double value)
{
    if (model->status != HPCT_OK)
        return hpct_fail(model->status, "%s",
                         model->message != NULL ? model->message : "out of memory");
    HPCT_TRY(each_pattern(model, list, NULL, 0));
    if (model->run != NULL)
        HPCT_TRY(model->run_class->unbuild(model));
    return each_pattern(model, list, apply, value);
}

/* ---- frozen layers ---- */

static void drop_slots(hpct_graph_param *param)
{
    for (int k = 0; k < HPCT_GRAPH_NUM_SLOTS; k++) {
        free(param->slot[k]);
        param->slot[k] = NULL;
    }
}

void hpct_layer_freeze(hpct_model *model, int i, bool frozen)
{
    hpct_layer *layer = &model->layers[i];
    layer->frozen = frozen;
    layer->states = 0;
    for (int p = 0; p < model->num_params; p++) {
        hpct_graph_param *param = &model->params[p];
        if (model->nodes[param->node].layer != i)
            continue;
        param->frozen = frozen || hpct_graph_param_is_fixed(model, param);
        param->state = frozen || hpct_graph_param_is_statistic(model, param);
        layer->states += param->state ? hpct_graph_shape_count(&param->shape) : 0;
        if (frozen)
            drop_slots(param);
    }
    for (int n = 0; n < model->num_nodes; n++) {
        hpct_graph_node *node = &model->nodes[n];
        if (node->layer == i && node->spec.kind == HPCT_OP_BATCH_NORM)
            node->spec.norm.frozen = frozen;
    }
}

static void freeze(hpct_model *model, int layer, double frozen)
{
    hpct_layer_freeze(model, layer, frozen > 0);
}

hpct_status hpct_model_set_trainable(hpct_model *model, const char *patterns, bool trainable)
{
    return change_layers(model, patterns, freeze, trainable ? 0 : 1);
}

/* ---- learning rates ---- */

static void set_factor(hpct_model *model, int layer, double factor)
{
    model->layers[layer].rate_factor = factor;
}

hpct_status hpct_model_set_rate_factor(hpct_model *model, const char *patterns, double factor)
{
    if (!(factor > 0) || !isfinite(factor))
        return hpct_fail(HPCT_ERR_USAGE,
                         "a learning rate times %g: it must be positive; layers that do not learn "
                         "are frozen",
                         factor);
    return change_layers(model, patterns, set_factor, factor);
}

/* ---- lists ---- */

/* "NAME" or "NAME=FACTOR" of the layers that `lists` accepts, comma-separated. */
static char *list_layers(const hpct_model *model, bool (*lists)(const hpct_layer *layer),
                         bool factors)
{
    size_t size = 1 + (size_t) model->num_layers * (HPCT_GRAPH_NAME_SIZE + 32), used = 0;
    char *list = calloc(size, 1);
    for (int i = 0; list != NULL && i < model->num_layers; i++) {
        const hpct_layer *layer = &model->layers[i];
        if (!lists(layer))
            continue;
        used +=
            (size_t) snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", layer->name);
        if (factors)
            used += (size_t) snprintf(list + used, size - used, "=%g", layer->rate_factor);
    }
    return list;
}

static bool is_frozen(const hpct_layer *layer)
{
    return layer->frozen && layer->parameters > 0;
}

static bool has_factor(const hpct_layer *layer)
{
    return layer->rate_factor > 0 && layer->parameters > 0;
}

char *hpct_model_frozen_layers(const hpct_model *model)
{
    return list_layers(model, is_frozen, false);
}

char *hpct_model_rate_factors(const hpct_model *model)
{
    return list_layers(model, has_factor, true);
}
