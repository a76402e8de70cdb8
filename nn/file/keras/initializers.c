/* Initializers: Keras has many names for few distributions. Those scaled by fan-in and fan-out
 * (Glorot, He, LeCun) are resolved to numbers for the given parameter. */
#include "nn/file/keras/initializers.h"

#include "nn/graph/initializer.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Keras' aliases of VarianceScaling(scale, mode, distribution). */
static const struct scaling {
    const char *class_name, *word; /* the name in older files */
    double scale;
    hpct_graph_fan mode;
    hpct_graph_distribution kind;
} scalings[] = {
    {"GlorotNormal", "glorot_normal", 1, HPCT_GRAPH_FAN_AVG, HPCT_GRAPH_TRUNCATED_NORMAL},
    {"HeNormal", "he_normal", 2, HPCT_GRAPH_FAN_IN, HPCT_GRAPH_TRUNCATED_NORMAL},
    {"HeUniform", "he_uniform", 2, HPCT_GRAPH_FAN_IN, HPCT_GRAPH_UNIFORM},
    {"LecunNormal", "lecun_normal", 1, HPCT_GRAPH_FAN_IN, HPCT_GRAPH_TRUNCATED_NORMAL},
    {"LecunUniform", "lecun_uniform", 1, HPCT_GRAPH_FAN_IN, HPCT_GRAPH_UNIFORM},
};

static double number(const json_t *config, const char *key, double fallback)
{
    const json_t *value = json_object_get(config, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

/* Sets a distribution's two numbers by key, with defaults. */
static void set(hpct_graph_param *param, hpct_graph_initializer kind, const json_t *config,
                const char *first, double first_default, const char *second, double second_default)
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

static bool set_variance_scaling(hpct_graph_param *param, const json_t *config)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
    /* "normal": Keras 2.2's name of the truncated one, still accepted by Keras */
    static const char *const kinds[] = {"uniform", "truncated_normal", "untruncated_normal",
                                        "normal", NULL};
    int mode = index_of(json_string_value(json_object_get(config, "mode")), modes);
    int kind = index_of(json_string_value(json_object_get(config, "distribution")), kinds);
    if (mode < 0 || kind < 0)
        return false;
    hpct_graph_param_scale_variance(param, number(config, "scale", 1), (hpct_graph_fan) mode,
                                    kind == 3 ? HPCT_GRAPH_TRUNCATED_NORMAL
                                              : (hpct_graph_distribution) kind);
    return true;
}

/* Returns false for an unknown name. */
static bool set_by_name(hpct_graph_param *param, const char *name, const json_t *config)
{
    bool has_fans = param->fan_in > 0 && param->fan_out > 0;
    if (strcmp(name, "Zeros") == 0 || strcmp(name, "zeros") == 0)
        param->initializer = HPCT_GRAPH_INIT_ZEROS;
    else if (strcmp(name, "Ones") == 0 || strcmp(name, "ones") == 0)
        param->initializer = HPCT_GRAPH_INIT_ONES;
    else if (strcmp(name, "Constant") == 0)
        set(param, HPCT_GRAPH_INIT_CONSTANT, config, "value", 0, NULL, 0);
    else if (strcmp(name, "RandomUniform") == 0)
        set(param, HPCT_GRAPH_INIT_UNIFORM, config, "minval", -0.05, "maxval", 0.05);
    else if (strcmp(name, "RandomNormal") == 0)
        set(param, HPCT_GRAPH_INIT_NORMAL, config, "mean", 0, "stddev", 0.05);
    else if (strcmp(name, "TruncatedNormal") == 0)
        set(param, HPCT_GRAPH_INIT_TRUNCATED_NORMAL, config, "mean", 0, "stddev", 0.05);
    else if (has_fans &&
             (strcmp(name, "GlorotUniform") == 0 || strcmp(name, "glorot_uniform") == 0))
        param->initializer = HPCT_GRAPH_INIT_GLOROT_UNIFORM;
    else if (has_fans && strcmp(name, "VarianceScaling") == 0)
        return set_variance_scaling(param, config);
    else {
        for (size_t i = 0; has_fans && i < sizeof scalings / sizeof *scalings; i++) {
            const struct scaling *s = &scalings[i];
            if (strcmp(name, s->class_name) == 0 || strcmp(name, s->word) == 0) {
                hpct_graph_param_scale_variance(param, s->scale, s->mode, s->kind);
                return true;
            }
        }
        return false;
    }
    return true;
}

void hpct_keras_take_initializers(hpct_keras_layer *layer, json_t **kept)
{
    static const char *const keys[] = {
        "kernel_initializer", "depthwise_initializer",   "alpha_initializer",
        "bias_initializer",   "pointwise_initializer",   "gamma_initializer",
        "beta_initializer",   "moving_mean_initializer", "moving_variance_initializer"};
    *kept = json_object();
    if (*kept == NULL)
        hpct_keras_fail(layer, "out of memory");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(layer->settings, keys[i]);
        if (value != NULL && json_object_set(*kept, keys[i], value) != 0)
            hpct_keras_fail(layer, "out of memory");
        hpct_keras_drop(layer, keys[i]);
    }
}

int hpct_keras_initialized(const char *what)
{
    const char *tail = strstr(what, "_kernel");
    return (int) (tail != NULL ? (size_t) (tail - what) : strnlen(what, 32));
}

/* The setting of "conv2d/kernel" is "kernel_initializer", but "depthwise_initializer" for a
 * depthwise kernel. */
static const json_t *find(const json_t *kept, const hpct_graph_param *param, char key[32])
{
    const char *what = strrchr(param->name, '/');
    what = what == NULL ? param->name : what + 1;
    bool depthwise = json_object_get(kept, "depthwise_initializer") != NULL;
    if (depthwise && strcmp(what, "kernel") == 0)
        what = "depthwise";
    snprintf(key, 32, "%.*s_initializer", hpct_keras_initialized(what), what);
    return json_object_get(kept, key);
}

/* In Keras null means glorot_uniform, for biases too: the default of kernels only, so that null is
 * an error for other parameters. */
static bool is_default(const json_t *value, const hpct_graph_param *param)
{
    return value == NULL ||
           (json_is_null(value) && param->initializer == HPCT_GRAPH_INIT_GLOROT_UNIFORM);
}

/* What is wrong with an initializer's settings; NULL: nothing. Unknown settings would otherwise be
 * ignored silently. */
static const char *fault_of(const json_t *value)
{
    static const char *const numbers[] = {"value",  "minval", "maxval", "mean",
                                          "stddev", "scale",  NULL};
    static const char *const others[] = {"mode", "distribution", "seed", "dtype", NULL};
    const char *key;
    json_t *setting, *config = json_object_get(value, "config");
    json_object_foreach (config, key, setting) {
        if (index_of(key, numbers) >= 0 && !json_is_number(setting))
            return "has something other than one number";
        if (index_of(key, numbers) >= 0 && fabs(json_number_value(setting)) > FLT_MAX)
            return "has a number that is not finite as a float";
        if (index_of(key, numbers) < 0 && index_of(key, others) < 0 && !json_is_null(setting) &&
            !json_is_false(setting))
            return "has a setting that is not known";
    }
    return json_is_object(value) && !hpct_keras_is_own(value) ? "is not Keras' own" : NULL;
}

void hpct_keras_set_initializers(hpct_keras_layer *layer, json_t *kept)
{
    hpct_model *model = layer->model;
    for (int i = 0; i < model->num_params && layer->status == HPCT_OK; i++) {
        char key[32];
        hpct_graph_param *param = &model->params[i];
        if (model->nodes[param->node].layer != model->num_layers - 1)
            continue;
        const json_t *value = find(kept, param, key);
        const json_t *name = json_is_object(value) ? json_object_get(value, "class_name") : value;
        if (is_default(value, param))
            continue;
        const char *fault = fault_of(value);
        if (fault != NULL)
            hpct_keras_fail(layer, "%s %.63s %s", key,
                            json_is_string(name) ? json_string_value(name) : "", fault);
        else if (!json_is_string(name) ||
                 !set_by_name(param, json_string_value(name), json_object_get(value, "config")))
            hpct_keras_fail(layer,
                            "%s %.63s is not supported; there are: Zeros, Ones, Constant, "
                            "RandomUniform, RandomNormal, TruncatedNormal, VarianceScaling and the "
                            "Glorot, He and LeCun ones",
                            key,
                            json_is_null(value)    ? "null"
                            : json_is_string(name) ? json_string_value(name)
                                                   : "that has no name");
        else if (!isfinite(param->init[0]) || !isfinite(param->init[1]))
            hpct_keras_fail(layer, "%s has a number that is not finite", key);
    }
    json_decref(kept);
}

json_t *hpct_keras_initializer(const hpct_graph_param *param)
{
    static const struct {
        hpct_graph_initializer kind;
        const char *class_name, *first, *second;
    } names[] = {
        {HPCT_GRAPH_INIT_ZEROS, "Zeros", NULL, NULL},
        {HPCT_GRAPH_INIT_ONES, "Ones", NULL, NULL},
        {HPCT_GRAPH_INIT_GLOROT_UNIFORM, "GlorotUniform", NULL, NULL},
        {HPCT_GRAPH_INIT_CONSTANT, "Constant", "value", NULL},
        {HPCT_GRAPH_INIT_UNIFORM, "RandomUniform", "minval", "maxval"},
        {HPCT_GRAPH_INIT_NORMAL, "RandomNormal", "mean", "stddev"},
        {HPCT_GRAPH_INIT_TRUNCATED_NORMAL, "TruncatedNormal", "mean", "stddev"},
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
