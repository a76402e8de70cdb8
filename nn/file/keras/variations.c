/* RandomRotation, RandomZoom, RandomTranslation, RandomContrast and RandomBrightness: settings as
 * Keras has them. */
#include "nn/file/keras/variations.h"

#include <float.h>
#include <math.h>

/* As of RandomFlip: the seed of hpct_model_initialize is used; rng_type is Keras 2's random
 * generator. Only channels last is supported. */
static void take_common(hpct_keras_layer *layer)
{
    static const char *const formats[] = {"channels_last", NULL};
    hpct_keras_drop(layer, "seed");
    hpct_keras_drop(layer, "rng_type");
    if (hpct_keras_has(layer, "data_format"))
        hpct_keras_word(layer, "data_format", formats);
}

/* Reads two numbers or one; returns how many: 0 if it is absent. */
static int take_numbers(hpct_keras_layer *layer, const char *key, double numbers[2])
{
    json_t *value = hpct_keras_take(layer, key);
    if (value == NULL)
        return 0;
    int count = json_is_number(value) ? 1 : json_array_size(value) == 2 ? 2 : 0;
    bool good = count > 0;
    for (int i = 0; good && i < count; i++) {
        const json_t *number = count == 1 ? value : json_array_get(value, (size_t) i);
        numbers[i] = json_number_value(number);
        good = json_is_number(number) && fabs(numbers[i]) <= FLT_MAX;
    }
    if (!good)
        hpct_keras_fail(layer, "%s must be one number or two", key);
    json_decref(value);
    return count;
}

static void sort(double numbers[2])
{
    double first = numbers[0];
    if (first <= numbers[1])
        return;
    numbers[0] = numbers[1];
    numbers[1] = first;
}

/* One number reaches to both sides. */
static void take_factor(hpct_keras_layer *layer, const char *key, double factor[2])
{
    hpct_keras_need(layer, key);
    if (take_numbers(layer, key, factor) != 1) {
        sort(factor);
        return;
    }
    factor[1] = fabs(factor[0]);
    factor[0] = -factor[1];
}

static json_t *pair_of(const double numbers[2])
{
    return json_pack("[f,f]", numbers[0], numbers[1]);
}

/* ---- moved cells ---- */

static const char *const fill_modes[] = {
    [HPCT_FILL_REFLECT] = "reflect",
    [HPCT_FILL_CONSTANT] = "constant",
    [HPCT_FILL_NEAREST] = "nearest",
    [HPCT_FILL_WRAP] = "wrap",
    NULL,
};
static const char *const interpolations[] = {"bilinear", "nearest", NULL};

static void take_fill(hpct_keras_layer *layer, hpct_random_affine *affine)
{
    affine->fill_mode = (hpct_fill_mode) hpct_keras_word(layer, "fill_mode", fill_modes);
    affine->fill_value = hpct_keras_number(layer, "fill_value", 0);
    affine->nearest = hpct_keras_word(layer, "interpolation", interpolations) == 1;
    take_common(layer);
}

static json_t *with_fill(const hpct_random_affine *affine, json_t *settings)
{
    json_t *fill = json_pack("{s:s, s:f, s:s, s:s}", "fill_mode", fill_modes[affine->fill_mode],
                             "fill_value", affine->fill_value, "interpolation",
                             interpolations[affine->nearest], "data_format", "channels_last");
    bool whole = settings != NULL && fill != NULL && json_object_update(settings, fill) == 0;
    json_decref(fill);
    if (whole)
        return settings;
    json_decref(settings);
    return NULL;
}

void hpct_keras_add_random_rotation(hpct_keras_layer *layer)
{
    hpct_random_affine affine = {.square = true};
    take_factor(layer, "factor", affine.height);
    take_fill(layer, &affine);
    if (hpct_keras_taken(layer))
        hpct_model_add_random_rotation(layer->model, &affine);
}

json_t *hpct_keras_random_rotation_settings(const hpct_layer *layer)
{
    const hpct_random_affine *affine = &layer->config.random_affine;
    return with_fill(affine, json_pack("{s:o}", "factor", pair_of(affine->height)));
}

void hpct_keras_add_random_zoom(hpct_keras_layer *layer)
{
    hpct_random_affine affine = {.square = !hpct_keras_has(layer, "width_factor")};
    take_factor(layer, "height_factor", affine.height);
    if (affine.square)
        hpct_keras_drop(layer, "width_factor"); /* null: as the height's */
    else
        take_factor(layer, "width_factor", affine.width);
    take_fill(layer, &affine);
    if (hpct_keras_taken(layer))
        hpct_model_add_random_zoom(layer->model, &affine);
}

void hpct_keras_add_random_translation(hpct_keras_layer *layer)
{
    hpct_random_affine affine = {.square = false};
    take_factor(layer, "height_factor", affine.height);
    take_factor(layer, "width_factor", affine.width);
    take_fill(layer, &affine);
    if (hpct_keras_taken(layer))
        hpct_model_add_random_translation(layer->model, &affine);
}

json_t *hpct_keras_random_sizes_settings(const hpct_layer *layer)
{
    const hpct_random_affine *affine = &layer->config.random_affine;
    json_t *width = affine->square ? json_null() : pair_of(affine->width);
    return with_fill(affine, json_pack("{s:o, s:o}", "height_factor", pair_of(affine->height),
                                       "width_factor", width));
}

/* ---- changed values ---- */

static void take_range(hpct_keras_layer *layer, double range[2])
{
    if (take_numbers(layer, "value_range", range) == 1 || range[0] == range[1])
        hpct_keras_fail(layer, "value_range must be two different numbers");
    sort(range);
    take_common(layer);
}

/* One factor is both; Keras 3 writes two. It sorts them, which Keras 2 and the first releases of 3
 * do not: of 0.3 and 0.1 they make 0.7 to 1.1, and it 0.9 to 1.3. */
void hpct_keras_add_random_contrast(hpct_keras_layer *layer)
{
    hpct_random_tone tone = {.value_range = {0, 255}};
    hpct_keras_need(layer, "factor");
    if (take_numbers(layer, "factor", tone.factor) == 1)
        tone.factor[1] = tone.factor[0];
    if (tone.factor[0] > tone.factor[1])
        hpct_keras_fail(layer, "factor must be two numbers in order: releases of Keras make "
                               "different contrasts of others");
    take_range(layer, tone.value_range);
    if (hpct_keras_taken(layer))
        hpct_model_add_random_contrast(layer->model, &tone);
}

void hpct_keras_add_random_brightness(hpct_keras_layer *layer)
{
    hpct_random_tone tone = {.value_range = {0, 255}};
    take_factor(layer, "factor", tone.factor);
    take_range(layer, tone.value_range);
    if (hpct_keras_taken(layer))
        hpct_model_add_random_brightness(layer->model, &tone);
}

json_t *hpct_keras_random_tone_settings(const hpct_layer *layer)
{
    const hpct_random_tone *tone = &layer->config.random_tone;
    return json_pack("{s:o, s:o}", "factor", pair_of(tone->factor), "value_range",
                     pair_of(tone->value_range));
}
