/* RandomRotation, RandomZoom, RandomTranslation, RandomContrast and RandomBrightness. */
#include "nn/graph/layer/window.h"

#include <float.h>
#include <stdlib.h>

/* Whether the tensor depends on trained parameters, frozen ones included. reached: [num_tensors],
 * cleared. */
static bool depends(const hpct_model *model, int tensor, bool *reached)
{
    reached[model->tensors[tensor].root] = true;
    for (int i = model->num_nodes - 1; i >= 0; i--) { /* in topological order */
        const hpct_graph_node *node = &model->nodes[i];
        if (!reached[model->tensors[node->output].root])
            continue;
        for (int k = 0; k < node->num_params; k++) {
            if (!hpct_graph_param_is_statistic(model, &model->params[node->first_param + k]))
                return true;
        }
        for (int k = 0; k < node->num_inputs; k++)
            reached[model->tensors[node->inputs[k]].root] = true;
    }
    return false;
}

/* Begins the layer; false if the model has failed. */
static bool begin(hpct_model *model, const char *type, const char *stem,
                  hpct_graph_picture *picture)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, type, stem, &input) || !hpct_layer_window_takes(model, &input))
        return false;
    bool *reached = calloc((size_t) model->num_tensors, sizeof *reached);
    bool late = reached != NULL && depends(model, hpct_model_head(model), reached);
    if (reached == NULL)
        hpct_layer_fail(model, "out of memory");
    else if (late)
        hpct_layer_fail(model, "it must come before all layers with trained weights: it changes "
                               "images of the input, and computes no gradient");
    *picture = (hpct_graph_picture){.in_h = input.size[0],
                                    .in_w = input.size[1],
                                    .out_h = input.size[0],
                                    .out_w = input.size[1],
                                    .channels = input.size[2]};
    bool good = reached != NULL && !late;
    free(reached);
    return good;
}

static void finish(hpct_model *model, hpct_op_kind kind, const hpct_graph_picture *picture)
{
    hpct_op_spec spec = {.kind = kind, .picture = *picture};
    hpct_shape output = HPCT_SHAPE(picture->out_h, picture->out_w, picture->channels);
    hpct_layer_add_node(model, &spec, &output);
}

/* Whether a factor's range is in order and within bounds; else fails the model. */
static bool check_factor(hpct_model *model, const char *what, const double factor[2], double least)
{
    if (factor[0] >= least && factor[0] <= factor[1] && factor[1] <= 1)
        return true;
    hpct_layer_fail(model, "%s from %g to %g is not in order and between %g and 1", what, factor[0],
                    factor[1], least);
    return false;
}

/* ---- moved cells ---- */

/* A factor of -1 would zoom to a single cell. */
static bool check_zoom(hpct_model *model, const hpct_random_affine *affine)
{
    if (affine->height[0] > -1 && (affine->square || affine->width[0] > -1))
        return true;
    hpct_layer_fail(model, "factors of zoom must be above -1");
    return false;
}

static bool check_fill(hpct_model *model, const hpct_random_affine *affine)
{
    bool known = affine->fill_mode >= HPCT_FILL_REFLECT && affine->fill_mode <= HPCT_FILL_WRAP;
    if (!known)
        hpct_layer_fail(model, "there is no fill mode %d", (int) affine->fill_mode);
    else if (!(affine->fill_value >= -FLT_MAX && affine->fill_value <= FLT_MAX))
        hpct_layer_fail(model, "the fill value %g must fit a float", affine->fill_value);
    else
        return true;
    return false;
}

static void add_affine(hpct_model *model, const char *type, const char *stem,
                       hpct_graph_variation_kind kind, const hpct_random_affine *affine)
{
    hpct_graph_picture picture;
    bool one = kind == HPCT_GRAPH_VARY_ROTATION || affine->square; /* factor */
    if (!begin(model, type, stem, &picture))
        return;
    hpct_layer_config_of(model)->random_affine = *affine;
    if (!check_factor(model, kind == HPCT_GRAPH_VARY_ROTATION ? "a factor" : "a height factor",
                      affine->height, -1) ||
        (!one && !check_factor(model, "a width factor", affine->width, -1)) ||
        (kind == HPCT_GRAPH_VARY_ZOOM && !check_zoom(model, affine)) || !check_fill(model, affine))
        return;
    picture.variation = (hpct_graph_variation){.kind = kind,
                                               .low = {affine->height[0], affine->width[0]},
                                               .high = {affine->height[1], affine->width[1]},
                                               .square = one,
                                               .nearest = affine->nearest,
                                               .fill = affine->fill_mode,
                                               .fill_value = (float) affine->fill_value};
    finish(model, HPCT_OP_RANDOM_AFFINE, &picture);
}

void hpct_model_add_random_rotation(hpct_model *model, const hpct_random_affine *affine)
{
    add_affine(model, "RandomRotation", "random_rotation", HPCT_GRAPH_VARY_ROTATION, affine);
}

void hpct_model_add_random_zoom(hpct_model *model, const hpct_random_affine *affine)
{
    add_affine(model, "RandomZoom", "random_zoom", HPCT_GRAPH_VARY_ZOOM, affine);
}

void hpct_model_add_random_translation(hpct_model *model, const hpct_random_affine *affine)
{
    add_affine(model, "RandomTranslation", "random_translation", HPCT_GRAPH_VARY_TRANSLATION,
               affine);
}

/* ---- changed values ---- */

static bool check_range(hpct_model *model, const double range[2])
{
    if (range[0] >= -FLT_MAX && range[0] < range[1] && range[1] <= FLT_MAX)
        return true;
    hpct_layer_fail(model, "the value range from %g to %g must be in order, and fit floats",
                    range[0], range[1]);
    return false;
}

static bool check_contrast(hpct_model *model, const double factor[2])
{
    if (factor[0] >= 0 && factor[0] <= factor[1] && factor[1] <= 1)
        return true;
    hpct_layer_fail(model, "the factors %g and %g must be in order, and between 0 and 1", factor[0],
                    factor[1]);
    return false;
}

static void add_tone(hpct_model *model, const char *type, const char *stem,
                     hpct_graph_variation_kind kind, const hpct_random_tone *tone)
{
    hpct_graph_picture picture;
    bool contrast = kind == HPCT_GRAPH_VARY_CONTRAST;
    double range[2] = {tone->value_range[0], tone->value_range[1]};
    if (range[0] == 0 && range[1] == 0)
        range[1] = 255;
    if (!begin(model, type, stem, &picture) || !check_range(model, range))
        return;
    if (contrast ? !check_contrast(model, tone->factor)
                 : !check_factor(model, "a factor", tone->factor, -1))
        return;
    hpct_layer_config_of(model)->random_tone = (hpct_random_tone){
        .factor = {tone->factor[0], tone->factor[1]}, .value_range = {range[0], range[1]}};
    double span = range[1] - range[0];
    picture.variation = (hpct_graph_variation){
        .kind = kind,
        .low = {contrast ? 1 - tone->factor[0] : tone->factor[0] * span},
        .high = {contrast ? 1 + tone->factor[1] : tone->factor[1] * span},
        .least = (float) range[0],
        .most = (float) range[1],
    };
    finish(model, HPCT_OP_RANDOM_TONE, &picture);
}

void hpct_model_add_random_contrast(hpct_model *model, const hpct_random_tone *tone)
{
    add_tone(model, "RandomContrast", "random_contrast", HPCT_GRAPH_VARY_CONTRAST, tone);
}

void hpct_model_add_random_brightness(hpct_model *model, const hpct_random_tone *tone)
{
    add_tone(model, "RandomBrightness", "random_brightness", HPCT_GRAPH_VARY_BRIGHTNESS, tone);
}
