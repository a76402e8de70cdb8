/* The random layers of images: RandomCrop, RandomFlip, RandomRotation and so on. */
#include "nn/graph/layer/window.h"

#include <float.h>

/* Begins the layer; false if the model has failed. */
static bool begin(hpct_model *model, const char *type, const char *stem,
                  hpct_graph_picture *picture)
{
    if (!hpct_layer_begin_picture(model, type, stem, picture))
        return false;
    if (!model->tensors[hpct_model_head(model)].weighted)
        return true;
    hpct_layer_fail(model, "it must come before all layers with trained weights: it changes images "
                           "of the input, and computes no gradient; move it to the model's "
                           "beginning, or remove it and train with --augment");
    return false;
}

void hpct_model_add_random_crop(hpct_model *model, int height, int width)
{
    hpct_graph_picture picture;
    if (begin(model, "RandomCrop", "random_crop", &picture))
        hpct_layer_add_picture_of(model, HPCT_OP_RANDOM_CROP, height, width, &picture);
}

void hpct_model_add_random_flip(hpct_model *model, hpct_flip mode)
{
    hpct_graph_picture picture;
    if (!begin(model, "RandomFlip", "random_flip", &picture))
        return;
    hpct_layer_config_of(model)->random_flip = mode;
    picture.variation = (hpct_graph_variation){.kind = HPCT_GRAPH_VARY_FLIP,
                                               .horizontal = mode != HPCT_FLIP_VERTICAL,
                                               .vertical = mode != HPCT_FLIP_HORIZONTAL,
                                               .nearest = true};
    if (mode != HPCT_FLIP_BOTH && mode != HPCT_FLIP_HORIZONTAL && mode != HPCT_FLIP_VERTICAL)
        hpct_layer_fail(model, "there is no flip %d", (int) mode);
    else
        hpct_layer_add_picture(model, HPCT_OP_RANDOM_FLIP, &picture);
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
    hpct_layer_add_picture(model, HPCT_OP_RANDOM_AFFINE, &picture);
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
    hpct_layer_add_picture(model, HPCT_OP_RANDOM_TONE, &picture);
}

void hpct_model_add_random_contrast(hpct_model *model, const hpct_random_tone *tone)
{
    add_tone(model, "RandomContrast", "random_contrast", HPCT_GRAPH_VARY_CONTRAST, tone);
}

void hpct_model_add_random_brightness(hpct_model *model, const hpct_random_tone *tone)
{
    add_tone(model, "RandomBrightness", "random_brightness", HPCT_GRAPH_VARY_BRIGHTNESS, tone);
}
