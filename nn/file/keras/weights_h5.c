/* Maps parameters to datasets of Keras' HDF5 files. */
#include "nn/file/keras/weights_h5.h"

#include "base/status.h"
#include "nn/file/keras/groups_h5.h"
#include "nn/file/keras/hdf5.h"
#include "nn/run/run.h"

#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 512
#define CLASS_NAMES "class_names"
#define TRAINED_WITH "trained_with"
#define MAX_DEPTH 20 /* of groups: two for each nested model */

/* Keras 2.13 and before wrote Keras 3's layout under the first of these names. */
static const char *const tops[] = {"/_layer_checkpoint_dependencies", "/layers"};

typedef hpct_keras_h5_group group;

/* ---- saving ---- */

static hpct_status save_param(hpct_keras_hdf5 *file, const hpct_model *model, int param,
                              const char *path)
{
    const hpct_shape *shape = &model->params[param].shape;
    size_t bytes = hpct_graph_shape_count(shape) * sizeof(float);
    float *values = malloc(bytes);
    if (values == NULL)
        return hpct_fail_memory(bytes);
    hpct_status status = hpct_run_param_get(model, param, values);
    if (status == HPCT_OK)
        status = hpct_keras_hdf5_write(file, path, shape, values);
    free(values);
    return status;
}

static hpct_status save_nest(hpct_keras_hdf5 *file, const hpct_graph_nest *nest, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "layers/%s", name);
    HPCT_TRY(hpct_keras_hdf5_make_group(file, path, NULL));
    snprintf(path, sizeof path, "layers/%s/vars", name);
    HPCT_TRY(hpct_keras_hdf5_make_group(file, path, nest->name));
    snprintf(path, sizeof path, "layers/%s/layers", name);
    return hpct_keras_hdf5_make_group(file, path, NULL);
}

static hpct_status save_group(hpct_keras_hdf5 *file, const hpct_model *model, const group *g)
{
    char path[PATH_SIZE];
    const hpct_layer *layer = &model->layers[g->layer];
    snprintf(path, sizeof path, "layers/%s", g->name);
    hpct_status status = hpct_keras_hdf5_make_group(file, path, NULL);
    snprintf(path, sizeof path, "layers/%s/vars", g->name);
    if (status == HPCT_OK)
        status = hpct_keras_hdf5_make_group(file, path, layer->name + layer->own_name);
    for (int k = 0; k < g->num_params && status == HPCT_OK; k++) {
        snprintf(path, sizeof path, "layers/%s/vars/%d", g->name, k);
        status = save_param(file, model, hpct_keras_h5_param_of(model, g->layer, k), path);
    }
    return status;
}

/* Nested models first, the outer of them before the inner. */
static hpct_status save_groups(hpct_keras_hdf5 *file, const hpct_model *model, const group *groups)
{
    for (int k = 0; k < model->num_nests; k++)
        HPCT_TRY(save_nest(file, &model->nests[k], groups[model->num_layers + k].name));
    for (int i = 0; i < model->num_layers; i++)
        HPCT_TRY(save_group(file, model, &groups[i]));
    return HPCT_OK;
}

hpct_status hpct_keras_h5_available(void)
{
    return hpct_keras_hdf5_available();
}

hpct_status hpct_keras_h5_save(const hpct_model *model, int fd, const char *path)
{
    group *groups;
    hpct_keras_hdf5 *file = NULL;
    HPCT_TRY(hpct_keras_h5_list_groups(model, "layers", &groups));
    hpct_status status = hpct_keras_hdf5_create(&file);
    if (status == HPCT_OK)
        status = hpct_keras_hdf5_make_group(file, "vars", model->name);
    if (status == HPCT_OK)
        status = hpct_keras_hdf5_make_group(file, "layers", NULL);
    if (status == HPCT_OK)
        status = save_groups(file, model, groups);
    if (status == HPCT_OK && model->class_names != NULL)
        status = hpct_keras_hdf5_write_attribute(file, CLASS_NAMES, model->class_names);
    if (status == HPCT_OK && model->trained_with != NULL)
        status = hpct_keras_hdf5_write_attribute(file, TRAINED_WITH, model->trained_with);
    if (status == HPCT_OK)
        status = hpct_keras_hdf5_save(file, fd, path);
    hpct_keras_hdf5_close(file);
    free(groups);
    return status;
}

/* ---- loading: path of each parameter's dataset, in either layout ---- */

typedef struct finder {
    const hpct_model *model;
    const group *groups;
    hpct_keras_hdf5 *file;
    size_t top;               /* length of the path of all layers, Keras 3's */
    char (*paths)[PATH_SIZE]; /* [num_params] */
    char **names;             /* [num_layers], as groups: layer names in the file, or NULL */
} finder;

/* Names the layer in the error as Keras does, not by its group. */
static hpct_status count_mismatch(const finder *f, const group *g, size_t there)
{
    const hpct_layer *layer = &f->model->layers[g->layer];
    return hpct_fail(
        HPCT_ERR_DATA,
        "layer \"%s\" (%s) has %d weights, but the file has %zu" HPCT_KERAS_WEIGHTS_HINT,
        layer->name, layer->type, g->num_params, there);
}

/* ---- layer names, which the file has in addition to the order ---- */

static const char *own_name(const finder *f, const group *g)
{
    const hpct_layer *layer = &f->model->layers[g->layer];
    return layer->name + layer->own_name;
}

/* The layer of this name beside another one: in the same nested model. */
static const group *find_layer(const finder *f, const char *name, const group *beside)
{
    int nest = f->model->layers[beside->layer].nest;
    for (int i = 0; i < f->model->num_layers; i++) {
        const group *g = &f->groups[i];
        if (g->num_params > 0 && f->model->layers[g->layer].nest == nest &&
            strcmp(own_name(f, g), name) == 0)
            return g;
    }
    return NULL;
}

/* Whether Keras may have numbered the layer: "conv2d", "conv2d_7". */
static bool is_numbered(const finder *f, const group *g, const char *name)
{
    char stem[HPCT_KERAS_STEM_SIZE];
    hpct_keras_stem(f->model->layers[g->layer].type, stem);
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0)
        return false;
    name += length;
    return *name == '\0' || (*name == '_' && name[1 + strspn(name + 1, "0123456789")] == '\0');
}

static hpct_status check_all_names(const finder *f)
{
    for (int i = 0; i < f->model->num_layers; i++) {
        const char *name = f->names[i], *wants = f->model->layers[f->groups[i].layer].name;
        if (f->groups[i].num_params > 0 && (name == NULL || strcmp(name, wants) != 0))
            return hpct_fail(HPCT_ERR_DATA,
                             "it has \"%.63s\" where model %s has \"%.63s\": weights of Keras' "
                             "network are not for torchvision's form of it",
                             name != NULL ? name : "a layer without name", f->model->name, wants);
    }
    return HPCT_OK;
}

/* The file has a name for each layer with weights, in order. If all of them are names of the
 * model's layers, but of others than the order says, order and names contradict each other: an
 * error. If some are not, layers were renumbered, as Keras does in each run, and such names are
 * ignored; those that somebody has given are not. */
static hpct_status check_names(const finder *f)
{
    if (hpct_keras_h5_needs_names(f->model))
        return check_all_names(f);
    const group *first = NULL, *given = NULL;
    bool all = true;
    for (int i = 0; i < f->model->num_layers; i++) {
        const group *g = &f->groups[i];
        if (g->num_params == 0)
            continue;
        const char *name = f->names[i];
        const group *named = name != NULL ? find_layer(f, name, g) : NULL;
        all = all && named != NULL;
        if (named == NULL || named == g)
            continue;
        if (first == NULL)
            first = g;
        if (given == NULL && !is_numbered(f, named, name))
            given = g;
    }
    if (!all)
        first = given;
    if (first == NULL)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_DATA,
        "its layers have the model's names in another order: \"%.63s\" comes where the "
        "model has \"%.63s\"; save the model's JSON and its weights together",
        f->names[first - f->groups], f->model->layers[first->layer].name);
}

static void keep_name(finder *f, int index, const char *name)
{
    free(f->names[index]);
    f->names[index] = strdup(name);
}

/* Shapes do not tell apart gamma and beta, for example. */
static hpct_status check_word(const finder *f, int param, const char *weight)
{
    const char *has = hpct_keras_h5_word(weight),
               *wants = hpct_keras_h5_word(f->model->params[param].name);
    if (has == NULL || wants == NULL || strcmp(has, wants) == 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "\"%.200s\" comes where \"%s\" should: its weights are in "
                     "another order than Keras'",
                     weight, f->model->params[param].name);
}

/* ---- the layout of Keras 3 ---- */

static const group *find_group(const finder *f, const char *name)
{
    for (int i = 0; i < f->model->num_layers; i++) {
        if (strcmp(f->groups[i].name, name) == 0)
            return &f->groups[i];
    }
    return NULL;
}

/* State of Dropout, RandomFlip etc. */
static bool is_generator(const char *name)
{
    return strcmp(name, "seed_generator") == 0 || strcmp(name, "generator") == 0;
}

/* Error for weights in the file without a layer in the model, at any depth: of further or nested
 * layers. States of random generators are not weights. */
static hpct_status check_nothing_else(const finder *f, const char *path, int depth)
{
    size_t count = 0;
    char name[PATH_SIZE / 2], child[PATH_SIZE];
    hpct_status status = hpct_keras_hdf5_count(f->file, path, &count);
    if (status == HPCT_OK && depth > MAX_DEPTH)
        return hpct_fail(HPCT_ERR_DATA, "%.200s lies in too many groups", path);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        status = hpct_keras_hdf5_name(f->file, path, i, name, sizeof name);
        if (status != HPCT_OK || (depth % 2 == 1 && is_generator(name)))
            continue;
        int length = snprintf(child, sizeof child, "%s/%s", path, name);
        bool is_own =
            depth > 0 && strcmp(name, "vars") == 0 && find_group(f, path + f->top + 1) != NULL;
        if (length >= (int) sizeof child)
            status = hpct_fail(HPCT_ERR_DATA, "%.200s has a name that is too long", path);
        else if (!is_own && hpct_keras_hdf5_is_group(f->file, child))
            status = check_nothing_else(f, child, depth + 1);
        else if (!is_own)
            status = hpct_fail(
                HPCT_ERR_DATA,
                "the model has no layer for the weights %.200s" HPCT_KERAS_WEIGHTS_HINT, path);
    }
    return status;
}

/* Reads the layer's name in the file; not all versions of Keras write it. */
static hpct_status take_name(finder *f, int index, const char *vars)
{
    char **names;
    size_t count = 0;
    if (!hpct_keras_hdf5_has_attribute(f->file, vars, "name"))
        return HPCT_OK;
    HPCT_TRY(hpct_keras_hdf5_strings(f->file, vars, "name", &names, &count));
    if (count == 1)
        keep_name(f, index, names[0]);
    free(names);
    return HPCT_OK;
}

static hpct_status find_keras3(finder *f, const char *top)
{
    char vars[PATH_SIZE];
    size_t own = 0;
    f->top = strlen(top);
    for (int i = 0; i < f->model->num_layers; i++) {
        const group *g = &f->groups[i];
        size_t there = 0;
        snprintf(vars, sizeof vars, "%s/%s/vars", top, g->name);
        HPCT_TRY(hpct_keras_hdf5_has(f->file, vars) ? hpct_keras_hdf5_count(f->file, vars, &there)
                                                    : HPCT_OK);
        if (there != (size_t) g->num_params)
            HPCT_TRY(count_mismatch(f, g, there));
        for (int k = 0; k < g->num_params; k++)
            snprintf(f->paths[hpct_keras_h5_param_of(f->model, g->layer, k)], PATH_SIZE,
                     "%s/%s/vars/%d", top, g->name, k);
        if (g->num_params > 0)
            HPCT_TRY(take_name(f, i, vars));
    }
    if (hpct_keras_hdf5_has(f->file, "/vars") &&
        hpct_keras_hdf5_count(f->file, "/vars", &own) == HPCT_OK && own > 0)
        return hpct_fail(HPCT_ERR_DATA, "the model has none of the weights /vars");
    return check_nothing_else(f, top, 0);
}

/* Keras 1 does not store its backend. Variable names end in :0 with TensorFlow only; Theano's
 * convolution kernels are rotated by 180 degrees. */
static hpct_status check_theano(const finder *f, int param, const char *weight)
{
    size_t length = strlen(weight);
    if (f->model->params[param].shape.rank != 4 || length < 2 ||
        strcmp(weight + length - 2, "_W") != 0)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_DATA,
        "\"%.200s\" is a kernel of Keras 1 on Theano, where kernels of convolutions are "
        "turned: load and save it with Keras 2 on TensorFlow",
        weight);
}

static hpct_status keep_path(finder *f, int param, const char *layer, const char *weight)
{
    int length = snprintf(f->paths[param], PATH_SIZE, "%s/%s", layer, weight);
    if (length < 0 || length >= PATH_SIZE)
        return hpct_fail(HPCT_ERR_DATA, "the name of one of its weights is too long");
    HPCT_TRY(check_word(f, param, weight));
    return check_theano(f, param, weight);
}

/* The name that a weight has for its layer, for the first weight of each. */
static void keep_nested_name(finder *f, int param, const char *weight)
{
    char name[HPCT_GRAPH_NAME_SIZE];
    int layer = f->model->nodes[f->model->params[param].node].layer;
    for (int i = 0; i < f->model->num_layers; i++) {
        if (f->groups[i].layer == layer && hpct_keras_h5_param_of(f->model, layer, 0) == param &&
            hpct_keras_h5_layer_name(weight, name, sizeof name))
            keep_name(f, i, name);
    }
}

/* The layers of a nested model are `last` - `first` groups, with all its weights. */
static hpct_status match_nested(finder *f, const char *layer, char **weights, size_t count,
                                int first, int last)
{
    hpct_keras_h5_list list = {f->model, f->groups + first, last - first, weights, count};
    const char *name = strrchr(layer, '/') + 1;
    size_t own = 0;
    for (int g = first; g < last; g++)
        own += (size_t) f->groups[g].num_params;
    if (own != count)
        return hpct_fail(HPCT_ERR_DATA,
                         "the nested model where the file has \"%.63s\" has %zu weights, but the "
                         "file has %zu" HPCT_KERAS_WEIGHTS_HINT,
                         name, own, count);
    int *params = calloc(count + 1, sizeof *params);
    hpct_status status = params != NULL ? HPCT_OK : hpct_fail_memory(count * sizeof *params);
    if (status == HPCT_OK && !hpct_keras_h5_match_list(&list, params))
        status = hpct_fail(HPCT_ERR_DATA,
                           "the weights of \"%.63s\" are in another order than Keras'", name);
    for (size_t k = 0; k < count && status == HPCT_OK; k++) {
        keep_nested_name(f, params[k], weights[k]);
        status = keep_path(f, params[k], layer, weights[k]);
    }
    free(params);
    return status;
}

/* The end of the groups of the nested model that a group is in; the next group if it is in none. */
static int end_of_nest(const finder *f, int at)
{
    int nest = hpct_keras_nest_at(f->model, 0, f->groups[at].layer), end = at + 1;
    while (nest > 0 && end < f->model->num_layers &&
           hpct_keras_nest_at(f->model, 0, f->groups[end].layer) == nest)
        end++;
    return end;
}

static hpct_status match_weights(finder *f, const char *name, const char *layer, char **weights,
                                 size_t count, int at)
{
    const group *g = &f->groups[at];
    if (f->model->layers[g->layer].nest > 0)
        return match_nested(f, layer, weights, count, at, end_of_nest(f, at));
    if ((size_t) g->num_params != count)
        return count_mismatch(f, g, count);
    keep_name(f, at, name);
    for (size_t k = 0; k < count; k++)
        HPCT_TRY(
            keep_path(f, hpct_keras_h5_param_of(f->model, g->layer, (int) k), layer, weights[k]));
    return HPCT_OK;
}

/* Matches a layer of Keras 2's list with the model's next layer, or nested model, that has
 * weights. */
static hpct_status match_keras2(finder *f, const char *name, const char *layer, int *next)
{
    char **weights;
    size_t count = 0;
    hpct_status status = hpct_keras_hdf5_strings(f->file, layer, "weight_names", &weights, &count);
    if (status != HPCT_OK || count == 0) {
        if (status == HPCT_OK)
            free(weights);
        return status;
    }
    while (*next < f->model->num_layers && f->groups[*next].num_params == 0)
        (*next)++;
    if (*next == f->model->num_layers)
        status = hpct_fail(HPCT_ERR_DATA,
                           "the model has no layer for the weights %.200s" HPCT_KERAS_WEIGHTS_HINT,
                           layer);
    else
        status = match_weights(f, name, layer, weights, count, *next);
    if (status == HPCT_OK)
        *next = end_of_nest(f, *next);
    free(weights);
    return status;
}

/* `top`: "" for the root group. */
static hpct_status find_keras2(finder *f, const char *top)
{
    char path[PATH_SIZE], **layers;
    size_t count = 0;
    int next = 0;
    HPCT_TRY(hpct_keras_hdf5_strings(f->file, top[0] != '\0' ? top : "/", "layer_names", &layers,
                                     &count));
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", top, layers[i]);
        if (length < 0 || (size_t) length >= sizeof path || !hpct_keras_hdf5_has(f->file, path))
            status = hpct_fail(HPCT_ERR_DATA, "%.200s is missing", layers[i]);
        else
            status = match_keras2(f, layers[i], path, &next);
    }
    for (; next < f->model->num_layers && status == HPCT_OK; next++) {
        if (f->groups[next].num_params > 0)
            status = count_mismatch(f, &f->groups[next], 0);
    }
    free(layers);
    return status;
}

/* Keras on Theano wrote convolution kernels rotated by 180 degrees, of the same shape. */
hpct_status hpct_keras_h5_check_backend(hpct_keras_hdf5 *file, const char *top)
{
    char **names;
    size_t count = 0;
    if (!hpct_keras_hdf5_has_attribute(file, top, "backend"))
        return HPCT_OK;
    HPCT_TRY(hpct_keras_hdf5_strings(file, top, "backend", &names, &count));
    hpct_status status = HPCT_OK;
    if (count > 0 && strcmp(names[0], "theano") == 0)
        status = hpct_fail(HPCT_ERR_DATA,
                           "Keras wrote it on Theano, whose kernels of convolutions are turned: "
                           "load and save it with Keras 2 on TensorFlow");
    free(names);
    return status;
}

static hpct_status find_paths(finder *f)
{
    HPCT_TRY(hpct_keras_h5_check_backend(f->file, "/"));
    if (hpct_keras_hdf5_has(f->file, "/model_weights"))
        HPCT_TRY(hpct_keras_h5_check_backend(f->file, "/model_weights"));
    if (hpct_keras_hdf5_has(f->file, tops[0]) && hpct_keras_hdf5_has(f->file, tops[1]))
        return hpct_fail(HPCT_ERR_DATA, "it has weights both in %s and in %s", tops[0], tops[1]);
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        if (hpct_keras_hdf5_has(f->file, tops[i]))
            return find_keras3(f, tops[i]);
    }
    if (hpct_keras_hdf5_has_strings(f->file, "/", "layer_names"))
        return find_keras2(f, "");
    if (hpct_keras_hdf5_has(f->file, "/model_weights"))
        return find_keras2(f, "/model_weights");
    return hpct_fail(HPCT_ERR_DATA, "not a file of Keras' weights: it has neither layers nor "
                                    "layer_names");
}

/* Rejects a dataset used for two parameters. */
static hpct_status check_once(const finder *f)
{
    for (int i = 0; i < f->model->num_params; i++) {
        for (int k = 0; k < i; k++) {
            if (strcmp(f->paths[i], f->paths[k]) == 0)
                return hpct_fail(HPCT_ERR_DATA, "%.200s is there for both \"%s\" and \"%s\"",
                                 f->paths[i], f->model->params[k].name, f->model->params[i].name);
        }
    }
    return HPCT_OK;
}

static hpct_status read_values(const finder *f, float **values)
{
    for (int i = 0; i < f->model->num_params; i++) {
        hpct_status status =
            hpct_keras_hdf5_check(f->file, f->paths[i], &f->model->params[i].shape);
        if (status != HPCT_OK)
            return hpct_fail(status, "%s" HPCT_KERAS_WEIGHTS_HINT, hpct_last_error());
    }
    for (int i = 0; i < f->model->num_params; i++) {
        size_t bytes = hpct_graph_shape_count(&f->model->params[i].shape) * sizeof(float);
        values[i] = malloc(bytes);
        HPCT_TRY(values[i] != NULL ? hpct_keras_hdf5_read(f->file, f->paths[i], values[i])
                                   : hpct_fail_memory(bytes));
    }
    return HPCT_OK;
}

/* Other programs may have an attribute of this name with other content. */
static hpct_status read_text(hpct_keras_hdf5 *file, const char *name, char **text)
{
    char **strings;
    size_t count = 0;
    if (!hpct_keras_hdf5_has_attribute(file, "/", name) ||
        hpct_keras_hdf5_strings(file, "/", name, &strings, &count) != HPCT_OK)
        return HPCT_OK;
    *text = count == 1 ? strdup(strings[0]) : NULL;
    free(strings);
    return count == 1 && *text == NULL ? hpct_fail_memory(0) : HPCT_OK;
}

hpct_status hpct_keras_h5_read_texts(hpct_keras_hdf5 *file, hpct_keras_h5_texts *texts)
{
    HPCT_TRY(read_text(file, CLASS_NAMES, &texts->class_names));
    return read_text(file, TRAINED_WITH, &texts->trained_with);
}

hpct_status hpct_keras_h5_load_texts(const char *path, hpct_keras_h5_texts *texts)
{
    hpct_keras_hdf5 *file = NULL;
    HPCT_TRY(hpct_keras_hdf5_open(&file, path));
    hpct_status status = hpct_keras_h5_read_texts(file, texts);
    hpct_keras_hdf5_close(file);
    return status;
}

static const char *find_top(const finder *f)
{
    return (hpct_keras_hdf5_has(f->file, tops[0]) ? tops[0] : tops[1]) + 1;
}

hpct_status hpct_keras_h5_load(const hpct_model *model, const char *path, float **values,
                               hpct_keras_h5_texts *texts)
{
    group *groups = NULL;
    finder f = {.model = model};
    HPCT_TRY(hpct_keras_hdf5_open(&f.file, path));
    hpct_status status = hpct_keras_h5_list_groups(model, find_top(&f), &groups);
    f.groups = groups;
    f.paths = calloc((size_t) model->num_params + 1, sizeof *f.paths);
    f.names = calloc((size_t) model->num_layers + 1, sizeof *f.names);
    if (status == HPCT_OK)
        status = f.paths != NULL && f.names != NULL ? find_paths(&f) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = check_names(&f);
    if (status == HPCT_OK)
        status = check_once(&f);
    if (status == HPCT_OK)
        status = read_values(&f, values);
    if (status == HPCT_OK)
        status = hpct_keras_h5_read_texts(f.file, texts);
    hpct_keras_hdf5_close(f.file);
    for (int i = 0; i < model->num_layers && f.names != NULL; i++)
        free(f.names[i]);
    free(f.names);
    free(f.paths);
    free(groups);
    return status;
}
