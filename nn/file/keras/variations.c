/* Layers that change images at random: RandomFlip, RandomCrop, RandomRotation, RandomZoom,
 * RandomTranslation, RandomContrast and RandomBrightness, with settings as Keras has them. */
#include "nn/file/keras/variations.h"

#include <float.h>
#include <math.h>

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
static void read_factor(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    double *factor = member;
    if (take_numbers(layer, field->key, factor) != 1) {
        sort(factor);
        return;
    }
    factor[1] = fabs(factor[0]);
    factor[0] = -factor[1];
}

static int write_two(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                     const void *member)
{
    (void) layer;
    const double *numbers = member;
    return json_object_set_new(settings, field->key, json_pack("[f,f]", numbers[0], numbers[1]));
}

const hpct_keras_special hpct_keras_factor = {read_factor, write_two};

/* null: as the height's. */
static void read_width(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    hpct_random_affine *affine = member;
    affine->square = !hpct_keras_has(layer, field->key);
    if (!affine->square)
        read_factor(layer, field, affine->width);
}

static int write_width(json_t *settings, const hpct_keras_field *field, const hpct_layer *layer,
                       const void *member)
{
    const hpct_random_affine *affine = member;
    if (affine->square)
        return json_object_set_new(settings, field->key, json_null());
    return write_two(settings, field, layer, affine->width);
}

const hpct_keras_special hpct_keras_width_factor = {read_width, write_width};

/* One factor is both; Keras 3 writes two. It sorts them, which Keras 2 and the first releases of 3
 * do not: of 0.3 and 0.1 they make 0.7 to 1.1, and it 0.9 to 1.3. */
static void read_contrast(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    double *both = member;
    if (take_numbers(layer, field->key, both) == 1)
        both[1] = both[0];
    if (both[0] > both[1])
        hpct_keras_fail(layer, "factor must be two numbers in order: releases of Keras make "
                               "different contrasts of others");
}

const hpct_keras_special hpct_keras_contrast_factor = {read_contrast, write_two};

static void read_range(hpct_keras_layer *layer, const hpct_keras_field *field, void *member)
{
    double *range = member;
    range[0] = 0;
    range[1] = 255;
    if (take_numbers(layer, field->key, range) == 1 || range[0] == range[1])
        hpct_keras_fail(layer, "value_range must be two different numbers");
    sort(range);
}

const hpct_keras_special hpct_keras_value_range = {read_range, write_two};
