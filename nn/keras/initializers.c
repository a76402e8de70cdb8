/* Initializers: Keras has many names for few distributions. Those that scale with the number of
 * inputs and outputs (Glorot, He, LeCun) become numbers as soon as the parameter is known. */
#include "nn/keras/initializers.h"

#include <math.h>
#include <string.h>

/* Of a normal distribution cut at two standard deviations, in the standard deviations of the whole:
 * Keras divides by it, so that what is drawn has the variance asked for. */
#define TRUNCATED_STDDEV 0.87962566103423978

typedef enum fan { FAN_IN, FAN_OUT, FAN_AVG } fan;
typedef enum distribution { UNIFORM, TRUNCATED_NORMAL, UNTRUNCATED_NORMAL } distribution;

/* The names of VarianceScaling(scale, mode, distribution). */
static const struct scaling {
    const char *class_name, *word; /* older files have the word alone */
    double scale;
    fan mode;
    distribution kind;
} scalings[] = {
    {"GlorotNormal", "glorot_normal", 1, FAN_AVG, TRUNCATED_NORMAL},
    {"HeNormal", "he_normal", 2, FAN_IN, TRUNCATED_NORMAL},
    {"HeUniform", "he_uniform", 2, FAN_IN, UNIFORM},
    {"LecunNormal", "lecun_normal", 1, FAN_IN, TRUNCATED_NORMAL},
    {"LecunUniform", "lecun_uniform", 1, FAN_IN, UNIFORM},
};

static void scale_variance(hpct_param *param, double scale, fan mode, distribution kind)
{
    double fans[] = {param->fan_in, param->fan_out, (param->fan_in + param->fan_out) / 2};
    double variance = scale / fmax(1, fans[mode]);
    param->init[0] = 0;
    if (kind == UNIFORM) {
        param->initializer = HPCT_INIT_UNIFORM;
        param->init[1] = sqrt(3 * variance);
        param->init[0] = -param->init[1];
    } else if (kind == TRUNCATED_NORMAL) {
        param->initializer = HPCT_INIT_TRUNCATED_NORMAL;
        param->init[1] = sqrt(variance) / TRUNCATED_STDDEV;
    } else {
        param->initializer = HPCT_INIT_NORMAL;
        param->init[1] = sqrt(variance);
    }
}

static double number(const json_t *config, const char *key, double fallback)
{
    const json_t *value = json_object_get(config, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

/* Both numbers of a distribution by their names and defaults. */
static void set(hpct_param *param, hpct_initializer kind, const json_t *config, const char *first,
                double first_default, const char *second, double second_default)
{
    param->initializer = kind;
    param->init[0] = number(config, first, first_default);
    param->init[1] = second != NULL ? number(config, second, second_default) : 0;
}

static int index_of(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (word != NULL && strcmp(word, words[i]) == 0)
            return i;
    }
    return -1;
}

static bool set_variance_scaling(hpct_param *param, const json_t *config)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
    /* "normal" is what Keras 2.2 and before called the truncated one, and Keras still reads. */
    static const char *const kinds[] = {"uniform", "truncated_normal", "untruncated_normal",
                                        "normal", NULL};
    int mode = index_of(json_string_value(json_object_get(config, "mode")), modes);
    int kind = index_of(json_string_value(json_object_get(config, "distribution")), kinds);
    if (mode < 0 || kind < 0)
        return false;
    scale_variance(param, number(config, "scale", 1), (fan) mode,
                   kind == 3 ? TRUNCATED_NORMAL : (distribution) kind);
    return true;
}

/* false for a name that is not known. */
static bool set_by_name(hpct_param *param, const char *name, const json_t *config)
{
    bool has_fans = param->fan_in > 0 && param->fan_out > 0;
    if (strcmp(name, "Zeros") == 0 || strcmp(name, "zeros") == 0)
        param->initializer = HPCT_INIT_ZEROS;
    else if (strcmp(name, "Ones") == 0 || strcmp(name, "ones") == 0)
        param->initializer = HPCT_INIT_ONES;
    else if (strcmp(name, "Constant") == 0)
        set(param, HPCT_INIT_CONSTANT, config, "value", 0, NULL, 0);
    else if (strcmp(name, "RandomUniform") == 0)
        set(param, HPCT_INIT_UNIFORM, config, "minval", -0.05, "maxval", 0.05);
    else if (strcmp(name, "RandomNormal") == 0)
        set(param, HPCT_INIT_NORMAL, config, "mean", 0, "stddev", 0.05);
    else if (strcmp(name, "TruncatedNormal") == 0)
        set(param, HPCT_INIT_TRUNCATED_NORMAL, config, "mean", 0, "stddev", 0.05);
    else if (has_fans &&
             (strcmp(name, "GlorotUniform") == 0 || strcmp(name, "glorot_uniform") == 0))
        param->initializer = HPCT_INIT_GLOROT_UNIFORM;
    else if (has_fans && strcmp(name, "VarianceScaling") == 0)
        return set_variance_scaling(param, config);
    else {
        for (size_t i = 0; has_fans && i < sizeof scalings / sizeof *scalings; i++) {
            const struct scaling *s = &scalings[i];
            if (strcmp(name, s->class_name) == 0 || strcmp(name, s->word) == 0) {
                scale_variance(param, s->scale, s->mode, s->kind);
                return true;
            }
        }
        return false;
    }
    return true;
}

void hpct_keras_take_initializers(hpct_keras_layer *layer, json_t **kept)
{
    static const char *const keys[] = {"kernel_initializer",         "depthwise_initializer",
                                       "bias_initializer",           "gamma_initializer",
                                       "beta_initializer",           "moving_mean_initializer",
                                       "moving_variance_initializer"};
    *kept = json_object();
    if (*kept == NULL)
        hpct_keras_fail(layer, "out of memory");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = hpct_keras_take(layer, keys[i]);
        if (value != NULL && json_object_set_new(*kept, keys[i], value) != 0)
            hpct_keras_fail(layer, "out of memory");
    }
}

/* "kernel" of "conv2d/kernel"; Keras 2 calls a depthwise kernel's setting by another name. */
static const json_t *find(const json_t *kept, const hpct_param *param, char key[32])
{
    const char *what = strrchr(param->name, '/');
    what = what == NULL ? param->name : what + 1;
    snprintf(key, 32, "%.16s_initializer", what);
    const json_t *value = json_object_get(kept, key);
    if (value == NULL && strcmp(what, "kernel") == 0) {
        snprintf(key, 32, "depthwise_initializer");
        value = json_object_get(kept, key);
    }
    return value;
}

void hpct_keras_set_initializers(hpct_keras_layer *layer, json_t *kept)
{
    hpct_model *model = layer->model;
    for (int i = 0; i < model->num_params && layer->status == HPCT_OK; i++) {
        char key[32];
        hpct_param *param = &model->params[i];
        if (model->nodes[param->node].layer != model->num_layers - 1)
            continue;
        const json_t *value = find(kept, param, key);
        const json_t *name = json_is_object(value) ? json_object_get(value, "class_name") : value;
        if (value == NULL)
            continue;
        if (!json_is_string(name) ||
            !set_by_name(param, json_string_value(name), json_object_get(value, "config")))
            hpct_keras_fail(layer,
                            "%s %.63s is not supported; there are: Zeros, Ones, Constant, "
                            "RandomUniform, RandomNormal, TruncatedNormal, VarianceScaling and the "
                            "Glorot, He and LeCun ones",
                            key,
                            json_is_string(name) ? json_string_value(name) : "that has no name");
        else if (!isfinite(param->init[0]) || !isfinite(param->init[1]))
            hpct_keras_fail(layer, "%s has a number that is not finite", key);
    }
    json_decref(kept);
}

json_t *hpct_keras_initializer(const hpct_param *param)
{
    static const struct {
        hpct_initializer kind;
        const char *class_name, *first, *second;
    } names[] = {
        {HPCT_INIT_ZEROS, "Zeros", NULL, NULL},
        {HPCT_INIT_ONES, "Ones", NULL, NULL},
        {HPCT_INIT_GLOROT_UNIFORM, "GlorotUniform", NULL, NULL},
        {HPCT_INIT_CONSTANT, "Constant", "value", NULL},
        {HPCT_INIT_UNIFORM, "RandomUniform", "minval", "maxval"},
        {HPCT_INIT_NORMAL, "RandomNormal", "mean", "stddev"},
        {HPCT_INIT_TRUNCATED_NORMAL, "TruncatedNormal", "mean", "stddev"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].kind != param->initializer)
            continue;
        json_t *config = json_object();
        if (names[i].first != NULL)
            json_object_set_new(config, names[i].first, json_real(param->init[0]));
        if (names[i].second != NULL)
            json_object_set_new(config, names[i].second, json_real(param->init[1]));
        return json_pack("{s:s, s:s, s:o, s:n}", "module", "keras.initializers", "class_name",
                         names[i].class_name, "config", config, "registered_name");
    }
    return NULL;
}
