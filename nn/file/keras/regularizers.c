/* Regularizers: Keras' three penalties on weights are l1 sum |w| + l2 sum w^2 with one or both
 * factors. */
#include "nn/file/keras/regularizers.h"
#include "nn/file/keras/initializers.h"

#include <float.h>
#include <string.h>

static const char *const keys[] = {
    "kernel_regularizer", "depthwise_regularizer", "pointwise_regularizer", "alpha_regularizer",
    "bias_regularizer",   "gamma_regularizer",     "beta_regularizer"};
#define NUM_KEYS (sizeof keys / sizeof *keys)
#define NUM_KERNELS 4 /* the first of them */

/* Keras' classes, the names in older files, and the defaults of their factors. Those of Keras 2's
 * function l1_l2 differ from the class's. */
static const struct penalty_class {
    const char *class_name, *word;
    double l1, l2; /* negative: the class has no such factor */
} classes[] = {
    {"L1", "l1", 0.01, -1},
    {"L2", "l2", -1, 0.01},
    {"L1L2", "l1l2", 0, 0},
    {"l1_l2", "l1_l2", 0.01, 0.01},
};

void hpct_keras_take_regularizers(hpct_keras_layer *layer, json_t **kept)
{
    *kept = json_object();
    if (*kept == NULL)
        hpct_keras_fail(layer, "out of memory");
    if (strcmp(layer->class_name, "LayerScale") == 0) /* Keras' has none */
        return;
    for (size_t i = 0; i < NUM_KEYS; i++) {
        json_t *value = json_object_get(layer->settings, keys[i]);
        if (value != NULL && !json_is_null(value) && json_object_set(*kept, keys[i], value) != 0)
            hpct_keras_fail(layer, "out of memory");
        hpct_keras_drop(layer, keys[i]);
    }
}

/* "kernel_regularizer" of "conv2d/kernel", "depthwise_regularizer" of depthwise kernels. */
static void key_of(const hpct_model *model, const hpct_graph_param *param, char key[32])
{
    const char *what = strrchr(param->name, '/');
    what = what == NULL ? param->name : what + 1;
    if (strcmp(what, "kernel") == 0 &&
        strcmp(model->layers[model->nodes[param->node].layer].type, "DepthwiseConv2D") == 0)
        what = "depthwise";
    snprintf(key, 32, "%.*s_regularizer", hpct_keras_initialized(what), what);
}

static const struct penalty_class *find(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(name, classes[i].class_name) == 0 || strcmp(name, classes[i].word) == 0)
            return &classes[i];
    }
    return NULL;
}

/* A factor, 0 if the class has none; negative if the config has something else. null is the
 * default, as in Keras. */
static double factor_of(const json_t *config, const char *key, double fallback)
{
    const json_t *value = json_object_get(config, key);
    if (value == NULL || json_is_null(value))
        return fallback < 0 ? 0 : fallback;
    double factor = json_is_number(value) ? json_number_value(value) : -1;
    return fallback < 0 || !(factor <= (double) FLT_MAX) ? -1 : factor;
}

/* Whether the config has nothing but factors. */
static bool has_only_factors(const json_t *config)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *) (uintptr_t) config, key, value) {
        if (strcmp(key, "l1") != 0 && strcmp(key, "l2") != 0)
            return false;
    }
    return config == NULL || json_is_object(config);
}

/* value: an object with class_name and config, or in older files a name. */
static void set_one(hpct_keras_layer *layer, const char *key, const json_t *value,
                    hpct_graph_param *param)
{
    const json_t *name = json_is_object(value) ? json_object_get(value, "class_name") : value;
    const json_t *config = json_object_get(value, "config");
    const char *text = json_is_string(name) ? json_string_value(name) : "that has no name";
    const struct penalty_class *class = find(json_string_value(name));
    if (json_is_object(value) && !hpct_keras_is_own(value))
        hpct_keras_fail(layer, "%s %.63s is not Keras' own", key, text);
    else if (class == NULL)
        hpct_keras_fail(layer, "%s %.63s is not supported; there are: L1, L2 and L1L2", key, text);
    else if (!has_only_factors(config))
        hpct_keras_fail(layer, "%s %.63s has a setting that is not known", key, text);
    if (layer->status != HPCT_OK)
        return;
    param->l1 = factor_of(config, "l1", class->l1);
    param->l2 = factor_of(config, "l2", class->l2);
    if (param->l1 < 0 || param->l2 < 0)
        hpct_keras_fail(layer, "%s %.63s must have factors that are finite numbers from 0 on", key,
                        text);
}

/* What is left would be ignored silently; in a layer with other parameters Keras, too, ignores
 * those of a bias, scale or offset that it does not have. */
static void check_rest(hpct_keras_layer *layer, const json_t *kept)
{
    const hpct_model *model = layer->model;
    bool any = model->layers[model->num_layers - 1].parameters > 0;
    for (size_t i = 0; i < (any ? NUM_KERNELS : NUM_KEYS); i++) {
        if (json_object_get(kept, keys[i]) != NULL)
            hpct_keras_fail(layer, "%s is of no parameter of this class", keys[i]);
    }
}

void hpct_keras_set_regularizers(hpct_keras_layer *layer, json_t *kept)
{
    hpct_model *model = layer->model;
    for (int i = 0; i < model->num_params && layer->status == HPCT_OK; i++) {
        char key[32];
        hpct_graph_param *param = &model->params[i];
        if (model->nodes[param->node].layer != model->num_layers - 1)
            continue;
        key_of(model, param, key);
        const json_t *value = json_object_get(kept, key);
        if (value != NULL)
            set_one(layer, key, value, param);
        json_object_del(kept, key);
    }
    if (layer->status == HPCT_OK)
        check_rest(layer, kept);
    json_decref(kept);
}

json_t *hpct_keras_regularizer(const hpct_model *model, const hpct_graph_param *param, char key[32])
{
    json_t *config = json_object();
    const struct penalty_class *class = &classes[param->l2 <= 0 ? 0 : param->l1 <= 0 ? 1 : 2];
    if (class->l1 >= 0)
        json_object_set_new(config, "l1", json_real(param->l1));
    if (class->l2 >= 0)
        json_object_set_new(config, "l2", json_real(param->l2));
    key_of(model, param, key);
    return json_pack("{s:s, s:s, s:o, s:n}", "module", "keras.regularizers", "class_name",
                     class->class_name, "config", config, "registered_name");
}
