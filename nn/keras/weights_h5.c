/* Which dataset of Keras' HDF5 files holds which parameter. */
#include "nn/keras/weights_h5.h"

#include "base/status.h"
#include "nn/keras/hdf5.h"
#include "nn/keras/order.h"

#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 512

/* ---- the model's side ---- */

/* The layers in Keras' order, each with its group's name. */
typedef struct group {
    int layer;
    int num_params;
    char name[HPCT_KERAS_STEM_SIZE + 16]; /* "conv2d_1" */
} group;

static int layer_of(const hpct_model *model, int param)
{
    return model->nodes[model->params[param].node].layer;
}

static hpct_status list_groups(const hpct_model *model, group **out)
{
    size_t count = (size_t) model->num_layers;
    group *groups = calloc(count + 1, sizeof *groups);
    int *order = calloc(count + 1, sizeof *order);
    hpct_status status = groups != NULL && order != NULL ? HPCT_OK : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = hpct_keras_order(model, order);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        char stem[HPCT_KERAS_STEM_SIZE];
        const char *type = model->layers[order[i]].type;
        int same = 0;
        groups[i].layer = order[i];
        for (size_t k = 0; k < i; k++)
            same += strcmp(model->layers[order[k]].type, type) == 0;
        hpct_keras_stem(type, stem);
        if (same == 0)
            snprintf(groups[i].name, sizeof groups[i].name, "%s", stem);
        else
            snprintf(groups[i].name, sizeof groups[i].name, "%s_%d", stem, same);
        for (int p = 0; p < model->num_params; p++)
            groups[i].num_params += layer_of(model, p) == order[i];
    }
    free(order);
    if (status == HPCT_OK)
        *out = groups;
    else
        free(groups);
    return status;
}

/* The which-th variable of a layer as Keras counts them: the trained ones before the state. */
static int param_of(const hpct_model *model, int layer, int which)
{
    for (int state = 0; state < 2; state++) {
        for (int p = 0; p < model->num_params; p++) {
            if (layer_of(model, p) == layer && model->params[p].state == (state == 1) &&
                which-- == 0)
                return p;
        }
    }
    return -1;
}

/* ---- saving ---- */

static hpct_status save_param(hpct_hdf5 *file, const hpct_model *model, int param, const char *path)
{
    const hpct_shape *shape = &model->params[param].shape;
    size_t bytes = hpct_shape_count(shape) * sizeof(float);
    float *values = malloc(bytes);
    if (values == NULL)
        return hpct_fail_memory(bytes);
    hpct_status status = hpct_param_get(model, param, values);
    if (status == HPCT_OK)
        status = hpct_hdf5_write(file, path, shape, values);
    free(values);
    return status;
}

static hpct_status save_group(hpct_hdf5 *file, const hpct_model *model, const group *g)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "layers/%s", g->name);
    hpct_status status = hpct_hdf5_make_group(file, path, NULL);
    snprintf(path, sizeof path, "layers/%s/vars", g->name);
    if (status == HPCT_OK)
        status = hpct_hdf5_make_group(file, path, model->layers[g->layer].name);
    for (int k = 0; k < g->num_params && status == HPCT_OK; k++) {
        snprintf(path, sizeof path, "layers/%s/vars/%d", g->name, k);
        status = save_param(file, model, param_of(model, g->layer, k), path);
    }
    return status;
}

hpct_status hpct_h5_available(void)
{
    return hpct_hdf5_available();
}

hpct_status hpct_h5_save(const hpct_model *model, int fd, const char *path)
{
    group *groups;
    hpct_hdf5 *file = NULL;
    hpct_status status = list_groups(model, &groups);
    if (status != HPCT_OK)
        return status;
    status = hpct_hdf5_create(&file);
    if (status == HPCT_OK)
        status = hpct_hdf5_make_group(file, "vars", model->name);
    if (status == HPCT_OK)
        status = hpct_hdf5_make_group(file, "layers", NULL);
    for (int i = 0; i < model->num_layers && status == HPCT_OK; i++)
        status = save_group(file, model, &groups[i]);
    if (status == HPCT_OK)
        status = hpct_hdf5_save(file, fd, path);
    hpct_hdf5_close(file);
    free(groups);
    return status;
}

/* ---- loading: the path of each parameter's dataset, by one layout or the other ---- */

typedef struct finder {
    const hpct_model *model;
    const group *groups;
    hpct_hdf5 *file;
    char (*paths)[PATH_SIZE]; /* [num_params] */
} finder;

/* Keras' own name of a layer beside that of its group, for messages. */
static hpct_status count_mismatch(const finder *f, const group *g, size_t there)
{
    const hpct_layer *layer = &f->model->layers[g->layer];
    return hpct_fail(HPCT_ERR_DATA, "layer \"%s\" (%s) has %d weights, but the file has %zu",
                     layer->name, layer->type, g->num_params, there);
}

static const group *find_group(const finder *f, const char *name)
{
    for (int i = 0; i < f->model->num_layers; i++) {
        if (strcmp(f->groups[i].name, name) == 0)
            return &f->groups[i];
    }
    return NULL;
}

/* Weights of the file that the model has no layer for. */
static hpct_status check_nothing_else(const finder *f, const char *top)
{
    size_t count = 0;
    char name[PATH_SIZE / 2], vars[PATH_SIZE];
    hpct_status status = hpct_hdf5_count(f->file, top, &count);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        size_t there = 0;
        status = hpct_hdf5_name(f->file, top, i, name, sizeof name);
        if (status != HPCT_OK)
            return status;
        snprintf(vars, sizeof vars, "%s/%s/vars", top, name);
        if (find_group(f, name) != NULL || !hpct_hdf5_has(f->file, vars))
            continue;
        status = hpct_hdf5_count(f->file, vars, &there);
        if (status == HPCT_OK && there > 0)
            status = hpct_fail(HPCT_ERR_DATA,
                               "the model has no layer for the weights %.200s/%.200s", top, name);
    }
    return status;
}

static hpct_status find_keras3(finder *f, const char *top)
{
    char vars[PATH_SIZE];
    for (int i = 0; i < f->model->num_layers; i++) {
        const group *g = &f->groups[i];
        size_t there = 0;
        snprintf(vars, sizeof vars, "%s/%s/vars", top, g->name);
        hpct_status status =
            hpct_hdf5_has(f->file, vars) ? hpct_hdf5_count(f->file, vars, &there) : HPCT_OK;
        if (status == HPCT_OK && there != (size_t) g->num_params)
            status = count_mismatch(f, g, there);
        if (status != HPCT_OK)
            return status;
        for (int k = 0; k < g->num_params; k++)
            snprintf(f->paths[param_of(f->model, g->layer, k)], PATH_SIZE, "%s/%s/vars/%d", top,
                     g->name, k);
    }
    return check_nothing_else(f, top);
}

/* One layer of Keras 2's list against the next layer of the model that has weights. */
static hpct_status match_keras2(finder *f, const char *layer, int *next)
{
    char **weights;
    size_t count = 0;
    hpct_status status = hpct_hdf5_strings(f->file, layer, "weight_names", &weights, &count);
    if (status != HPCT_OK || count == 0) {
        if (status == HPCT_OK)
            free(weights);
        return status;
    }
    while (*next < f->model->num_layers && f->groups[*next].num_params == 0)
        (*next)++;
    if (*next == f->model->num_layers)
        status = hpct_fail(HPCT_ERR_DATA, "the model has no layer for the weights %.200s", layer);
    else if ((size_t) f->groups[*next].num_params != count)
        status = count_mismatch(f, &f->groups[*next], count);
    for (size_t k = 0; k < count && status == HPCT_OK; k++) {
        int param = param_of(f->model, f->groups[*next].layer, (int) k);
        int length = snprintf(f->paths[param], PATH_SIZE, "%s/%s", layer, weights[k]);
        if (length < 0 || length >= PATH_SIZE)
            status = hpct_fail(HPCT_ERR_DATA, "the name of one of its weights is too long");
    }
    (*next)++;
    free(weights);
    return status;
}

/* `top` is "" for the file's root. */
static hpct_status find_keras2(finder *f, const char *top)
{
    char path[PATH_SIZE], **layers;
    size_t count = 0;
    int next = 0;
    hpct_status status =
        hpct_hdf5_strings(f->file, top[0] != '\0' ? top : "/", "layer_names", &layers, &count);
    if (status != HPCT_OK)
        return status;
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", top, layers[i]);
        if (length < 0 || (size_t) length >= sizeof path || !hpct_hdf5_has(f->file, path))
            status = hpct_fail(HPCT_ERR_DATA, "%.200s is missing", layers[i]);
        else
            status = match_keras2(f, path, &next);
    }
    for (; next < f->model->num_layers && status == HPCT_OK; next++) {
        if (f->groups[next].num_params > 0)
            status = count_mismatch(f, &f->groups[next], 0);
    }
    free(layers);
    return status;
}

/* Keras on Theano wrote kernels of convolutions turned by half a turn, of the same shape. */
static hpct_status check_backend(hpct_hdf5 *file, const char *top)
{
    char **names;
    size_t count = 0;
    if (!hpct_hdf5_has_attribute(file, top, "backend"))
        return HPCT_OK;
    hpct_status status = hpct_hdf5_strings(file, top, "backend", &names, &count);
    if (status != HPCT_OK)
        return status;
    if (count > 0 && strcmp(names[0], "theano") == 0)
        status = hpct_fail(HPCT_ERR_DATA,
                           "Keras wrote it on Theano, whose kernels of convolutions are turned: "
                           "load and save it with Keras 2 on TensorFlow");
    free(names);
    return status;
}

static hpct_status find_paths(finder *f)
{
    hpct_status status = check_backend(f->file, "/");
    if (status == HPCT_OK && hpct_hdf5_has(f->file, "/model_weights"))
        status = check_backend(f->file, "/model_weights");
    if (status != HPCT_OK)
        return status;
    /* Keras 2.13 and before wrote the layout of Keras 3 under another name. */
    static const char *const tops[] = {"/_layer_checkpoint_dependencies", "/layers"};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        if (hpct_hdf5_has(f->file, tops[i]))
            return find_keras3(f, tops[i]);
    }
    if (hpct_hdf5_has_attribute(f->file, "/", "layer_names"))
        return find_keras2(f, "");
    if (hpct_hdf5_has(f->file, "/model_weights"))
        return find_keras2(f, "/model_weights");
    return hpct_fail(HPCT_ERR_DATA, "not a file of Keras' weights: it has neither layers nor "
                                    "layer_names");
}

static hpct_status read_values(const finder *f, float **values)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < f->model->num_params && status == HPCT_OK; i++)
        status = hpct_hdf5_check(f->file, f->paths[i], &f->model->params[i].shape);
    for (int i = 0; i < f->model->num_params && status == HPCT_OK; i++) {
        size_t bytes = hpct_shape_count(&f->model->params[i].shape) * sizeof(float);
        values[i] = malloc(bytes);
        status = values[i] != NULL ? hpct_hdf5_read(f->file, f->paths[i], values[i])
                                   : hpct_fail_memory(bytes);
    }
    return status;
}

hpct_status hpct_h5_load(const hpct_model *model, const char *path, float **values)
{
    group *groups = NULL;
    finder f = {.model = model};
    hpct_status status = list_groups(model, &groups);
    if (status != HPCT_OK)
        return status;
    f.groups = groups;
    f.paths = calloc((size_t) model->num_params + 1, sizeof *f.paths);
    status = f.paths != NULL ? hpct_hdf5_open(&f.file, path) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = find_paths(&f);
    if (status == HPCT_OK)
        status = read_values(&f, values);
    hpct_hdf5_close(f.file);
    free(f.paths);
    free(groups);
    return status;
}
