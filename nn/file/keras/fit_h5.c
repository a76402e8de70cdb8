/* Loads from Keras' HDF5 files what fits a model, layer by layer. */
#include "nn/file/keras/groups_h5.h"
#include "nn/file/keras/weights_h5.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 512
#define MOST_WEIGHTS 16 /* of a layer */
#define MAX_DEPTH 8     /* of nested models */

/* A layer in the file: Keras 3 "/layers/conv2d/vars", in a nested model
 * "/layers/sequential/layers/conv2d/vars", Keras 2 "/conv2d_1", or one of the layers whose weights
 * "/sequential" has. */
typedef struct place {
    char path[PATH_SIZE];
    char name[PATH_SIZE / 2]; /* the layer's; "": not in the file */
    size_t weights;           /* in Keras 2's files: how many it has, */
    size_t at[MOST_WEIGHTS];  /* and which in the group's list */
} place;

typedef struct fitting {
    const hpct_model *model;
    hpct_keras_hdf5 *file;
    hpct_keras_skips *skips;
    float **values;
    const char *top;
    bool keras2;
    place *places;
    size_t num_places;
} fitting;

static const char *name_of(const fitting *f, const hpct_keras_h5_group *g)
{
    const hpct_layer *layer = &f->model->layers[g->layer];
    return layer->name + layer->own_name;
}

/* ---- the layers of the file ---- */

static hpct_status take_name(const fitting *f, place *p)
{
    char **names;
    size_t count = 0;
    if (!hpct_keras_hdf5_has_attribute(f->file, p->path, "name"))
        return HPCT_OK;
    HPCT_TRY(hpct_keras_hdf5_strings(f->file, p->path, "name", &names, &count));
    if (count == 1)
        snprintf(p->name, sizeof p->name, "%s", names[0]);
    free(names);
    return HPCT_OK;
}

/* Room for one more place, empty. */
static hpct_status reserve(fitting *f)
{
    size_t bytes = (f->num_places + 1) * sizeof *f->places;
    place *places = realloc(f->places, bytes);
    if (places == NULL)
        return hpct_fail_memory(bytes);
    f->places = places;
    memset(&places[f->num_places], 0, sizeof *places);
    return HPCT_OK;
}

static hpct_status list_group(fitting *f, const char *path, int depth);

/* A layer, or a nested model, whose layers are in "layers" as those of the file are. */
static hpct_status list_layer(fitting *f, const char *path, int depth)
{
    char inner[PATH_SIZE];
    HPCT_TRY(reserve(f));
    place *p = &f->places[f->num_places];
    int length = snprintf(inner, sizeof inner, "%s%s", path, f->top);
    if (length < (int) sizeof inner && hpct_keras_hdf5_has(f->file, inner))
        return depth < MAX_DEPTH
                   ? list_group(f, inner, depth + 1)
                   : hpct_fail(HPCT_ERR_DATA, "%.200s lies in too many groups", inner);
    length = snprintf(p->path, sizeof p->path, "%s/vars", path);
    if (length >= (int) sizeof p->path || !hpct_keras_hdf5_has(f->file, p->path))
        return HPCT_OK;
    HPCT_TRY(take_name(f, p));
    f->num_places++;
    return HPCT_OK;
}

static hpct_status list_group(fitting *f, const char *path, int depth)
{
    size_t count = 0;
    char group[PATH_SIZE / 2], child[PATH_SIZE];
    HPCT_TRY(hpct_keras_hdf5_count(f->file, path, &count));
    for (size_t i = 0; i < count; i++) {
        HPCT_TRY(hpct_keras_hdf5_name(f->file, path, i, group, sizeof group));
        int length = snprintf(child, sizeof child, "%s/%s", path, group);
        if (length < (int) sizeof child)
            HPCT_TRY(list_layer(f, child, depth));
    }
    return HPCT_OK;
}

static bool has_layer(const fitting *f, const char *name)
{
    for (int i = 0; i < f->model->num_layers; i++) {
        const hpct_layer *layer = &f->model->layers[i];
        if (strcmp(layer->name + layer->own_name, name) == 0)
            return true;
    }
    return false;
}

/* The place of a weight's layer among those from `first` on, a new one for the first weight. */
static hpct_status find_weight_place(fitting *f, size_t first, const char *path, const char *name,
                                     place **out)
{
    for (size_t i = first; i < f->num_places; i++) {
        if (strcmp(f->places[i].name, name) == 0) {
            *out = &f->places[i];
            return HPCT_OK;
        }
    }
    HPCT_TRY(reserve(f));
    *out = &f->places[f->num_places++];
    snprintf((*out)->path, PATH_SIZE, "%s", path);
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    return HPCT_OK;
}

/* A layer, or a nested model: then a place for each layer by the names of weights. */
static hpct_status list_keras2_group(fitting *f, const char *group, const char *path)
{
    char **weights, name[PATH_SIZE / 2];
    size_t count = 0, first = f->num_places;
    place *p = NULL;
    if (!hpct_keras_hdf5_has_strings(f->file, path, "weight_names"))
        return HPCT_OK;
    HPCT_TRY(hpct_keras_hdf5_strings(f->file, path, "weight_names", &weights, &count));
    hpct_status status = HPCT_OK;
    for (size_t k = 0; k < count && status == HPCT_OK; k++) {
        if (has_layer(f, group) || !hpct_keras_h5_layer_name(weights[k], name, sizeof name))
            snprintf(name, sizeof name, "%s", group);
        status = find_weight_place(f, first, path, name, &p);
        if (status == HPCT_OK && p->weights++ < MOST_WEIGHTS)
            p->at[p->weights - 1] = k;
    }
    free(weights);
    if (f->num_places == first + 1 && !has_layer(f, f->places[first].name))
        snprintf(f->places[first].name, sizeof f->places->name, "%s", group);
    return status;
}

static hpct_status list_keras2(fitting *f)
{
    char **layers;
    size_t count = 0;
    HPCT_TRY(hpct_keras_hdf5_strings(f->file, f->top[0] != '\0' ? f->top : "/", "layer_names",
                                     &layers, &count));
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        char path[PATH_SIZE];
        int length = snprintf(path, sizeof path, "%s/%s", f->top, layers[i]);
        if (length < (int) sizeof path && hpct_keras_hdf5_has(f->file, path))
            status = list_keras2_group(f, layers[i], path);
    }
    free(layers);
    return status;
}

static hpct_status list_places(fitting *f)
{
    static const char *const tops[] = {"/layers", "/_layer_checkpoint_dependencies"};
    HPCT_TRY(hpct_keras_h5_check_backend(f->file, "/"));
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        f->top = tops[i];
        if (hpct_keras_hdf5_has(f->file, f->top))
            return list_group(f, f->top, 0);
    }
    f->keras2 = true;
    f->top = hpct_keras_hdf5_has_strings(f->file, "/", "layer_names") ? "" : "/model_weights";
    if (f->top[0] != '\0' && !hpct_keras_hdf5_has(f->file, f->top))
        return hpct_fail(HPCT_ERR_DATA, "not a file of Keras' weights: it has neither layers nor "
                                        "layer_names");
    HPCT_TRY(f->top[0] != '\0' ? hpct_keras_h5_check_backend(f->file, f->top) : HPCT_OK);
    return list_keras2(f);
}

/* The next layer of Keras 2's list that has weights; NULL after the last. */
static place *next_place(const fitting *f, size_t *next)
{
    while (*next < f->num_places && f->places[*next].weights == 0)
        (*next)++;
    return *next < f->num_places ? &f->places[(*next)++] : NULL;
}

/* Whether the file's layers are the model's in order, or the first of them, by their numbers of
 * weights, and some have names that are none of the model's. */
static bool is_renamed(const fitting *f, const hpct_keras_h5_group *groups)
{
    size_t next = 0;
    bool renamed = false;
    const place *p = NULL;
    for (int i = 0; i < f->model->num_layers; i++) {
        if (groups[i].num_params == 0)
            continue;
        p = next_place(f, &next);
        if (p == NULL)
            break;
        if (p->weights != (size_t) groups[i].num_params)
            return false;
        renamed = renamed || !has_layer(f, p->name);
    }
    return renamed && next_place(f, &next) == NULL;
}

/* Keras numbers "conv2d" from 0 or 1, by version and session, and keras.applications has renamed
 * layers ("conv1/conv"): by their names, some would be taken for others of the same shape. */
static void rename_places(fitting *f, const hpct_keras_h5_group *groups)
{
    size_t next = 0;
    for (size_t k = 0; k < f->num_places; k++)
        f->places[k].name[0] = '\0';
    for (int i = 0; i < f->model->num_layers; i++) {
        place *p = groups[i].num_params > 0 ? next_place(f, &next) : NULL;
        if (p != NULL)
            snprintf(p->name, sizeof p->name, "%s", name_of(f, &groups[i]));
    }
}

/* By name, of several in nested models the one that order has, too; else, in Keras 3's files, by
 * order, unless that is another layer of the model. */
static const place *find_place(const fitting *f, const hpct_keras_h5_group *g)
{
    char path[PATH_SIZE];
    const place *named = NULL;
    snprintf(path, sizeof path, "%s/%s/vars", f->top, g->name);
    for (size_t i = 0; i < f->num_places; i++) {
        const place *p = &f->places[i];
        if (strcmp(p->name, name_of(f, g)) == 0 && (named == NULL || strcmp(p->path, path) == 0))
            named = p;
    }
    if (named != NULL || hpct_keras_h5_needs_names(f->model))
        return named;
    for (size_t i = 0; i < f->num_places && !f->keras2; i++) {
        const place *p = &f->places[i];
        if (strcmp(p->path, path) == 0 && !has_layer(f, p->name))
            return p;
    }
    return NULL;
}

/* ---- one layer ---- */

/* Paths of its datasets; *count: how many there are, at most MOST_WEIGHTS are listed. */
static hpct_status list_weights(const fitting *f, const place *p,
                                char paths[MOST_WEIGHTS][PATH_SIZE], size_t *count)
{
    char **names = NULL;
    HPCT_TRY(f->keras2 ? hpct_keras_hdf5_strings(f->file, p->path, "weight_names", &names, count)
                       : hpct_keras_hdf5_count(f->file, p->path, count));
    bool fits = true;
    if (f->keras2)
        *count = p->weights;
    for (size_t k = 0; k < *count && k < MOST_WEIGHTS; k++) {
        int length = f->keras2 ? snprintf(paths[k], PATH_SIZE, "%s/%s", p->path, names[p->at[k]])
                               : snprintf(paths[k], PATH_SIZE, "%s/%zu", p->path, k);
        fits = fits && length < PATH_SIZE;
    }
    free(names);
    return fits ? HPCT_OK : hpct_fail(HPCT_ERR_DATA, "the name of one of its weights is too long");
}

static hpct_status read_layer(const fitting *f, const hpct_keras_h5_group *g,
                              char paths[MOST_WEIGHTS][PATH_SIZE])
{
    for (int k = 0; k < g->num_params; k++) {
        int param = hpct_keras_h5_param_of(f->model, g->layer, k);
        if (hpct_keras_hdf5_check(f->file, paths[k], &f->model->params[param].shape) != HPCT_OK)
            return hpct_keras_skips_add(f->skips, "%s (%.200s)", name_of(f, g), hpct_last_error());
    }
    for (int k = 0; k < g->num_params; k++) {
        int param = hpct_keras_h5_param_of(f->model, g->layer, k);
        size_t bytes = hpct_graph_shape_count(&f->model->params[param].shape) * sizeof(float);
        f->values[param] = malloc(bytes);
        HPCT_TRY(f->values[param] != NULL
                     ? hpct_keras_hdf5_read(f->file, paths[k], f->values[param])
                     : hpct_fail_memory(bytes));
    }
    f->skips->loaded++;
    return HPCT_OK;
}

static hpct_status load_layer(const fitting *f, const hpct_keras_h5_group *g)
{
    char paths[MOST_WEIGHTS][PATH_SIZE];
    size_t count = 0;
    const place *p = find_place(f, g);
    if (p == NULL)
        return hpct_keras_skips_add(f->skips, "%s (missing)", name_of(f, g));
    HPCT_TRY(list_weights(f, p, paths, &count));
    if (count != (size_t) g->num_params || count > MOST_WEIGHTS)
        return hpct_keras_skips_add(f->skips, "%s (%zu weights in the file, not %d)", name_of(f, g),
                                    count, g->num_params);
    return read_layer(f, g, paths);
}

static hpct_status load_layers(fitting *f, const hpct_keras_h5_group *groups)
{
    if (f->keras2 && !hpct_keras_h5_needs_names(f->model) && is_renamed(f, groups))
        rename_places(f, groups);
    for (int i = 0; i < f->model->num_layers; i++) {
        if (groups[i].num_params > 0)
            HPCT_TRY(load_layer(f, &groups[i]));
    }
    return hpct_keras_skips_end(f->skips);
}

hpct_status hpct_keras_h5_load_fitting(const hpct_model *model, const char *path, float **values,
                                       hpct_keras_h5_texts *texts, hpct_keras_skips *skips)
{
    hpct_keras_h5_group *groups = NULL;
    fitting f = {.model = model, .skips = skips, .values = values};
    HPCT_TRY(hpct_keras_hdf5_open(&f.file, path));
    hpct_status status = list_places(&f);
    if (status == HPCT_OK)
        status = hpct_keras_h5_list_groups(model, f.keras2 ? "layers" : f.top + 1, &groups);
    if (status == HPCT_OK)
        status = load_layers(&f, groups);
    if (status == HPCT_OK)
        status = hpct_keras_h5_read_texts(f.file, texts);
    hpct_keras_hdf5_close(f.file);
    free(f.places);
    free(groups);
    return status;
}
