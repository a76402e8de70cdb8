/* A built-in model in torchvision's form has layers named as its modules, so that it says what is
 * in a file. A model of the same network with Keras' names has the same parameters in the same
 * order, and perhaps biases before normalizations. torch has kernels as [out][in][height][width]
 * and [out][in]. */
#include "nn/file/torchvision.h"

#include "base/status.h"
#include "nn/models/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VGG_CELLS 7 /* each way, before VGG's first dense layer: AdaptiveAvgPool2d((7, 7)) */

typedef struct hpct_weights_torch_source {
    char name[HPCT_GRAPH_NAME_SIZE +
              16];           /* "layer1.0.conv1.weight"; "": zeros, as torch has no bias */
    hpct_shape shape;        /* of the parameter; of a flattened picture's, four sizes */
    int axes[HPCT_MAX_RANK]; /* axis k of the shape is this one of the tensor */
    float add;               /* to each value */
} source;

/* ---- names ---- */

static const char *word_of(const hpct_graph_param *param)
{
    return strrchr(param->name, '/') + 1;
}

/* torch's name of a parameter of a model in torchvision's form. */
static void name_of(const hpct_graph_param *param, char *to, size_t size)
{
    static const char *const words[][2] = {{"kernel", "weight"},
                                           {"gamma", "weight"},
                                           {"beta", "bias"},
                                           {"moving_mean", "running_mean"},
                                           {"moving_variance", "running_var"}};
    const char *word = word_of(param), *torch = word;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i][0]) == 0)
            torch = words[i][1];
    }
    snprintf(to, size, "%.*s.%s", (int) (word - 1 - param->name), param->name, torch);
}

static const hpct_weights_st_entry *find_param(const hpct_weights_st_index *index,
                                               const hpct_graph_param *param)
{
    char name[sizeof param->name];
    name_of(param, name, sizeof name);
    return hpct_weights_st_find(index, name);
}

/* ---- an index ---- */

static bool is_state_dict(const hpct_model *model, const hpct_weights_st_index *index)
{
    for (int i = 0; i < model->num_params; i++) {
        if (hpct_weights_st_find(index, model->params[i].name) != NULL)
            return false;
    }
    for (size_t i = 0; i < index->count; i++) {
        const char *dot = strrchr(index->entries[i].name, '.');
        if (dot != NULL && strcmp(dot, ".weight") == 0)
            return true;
    }
    return false;
}

/* Batches seen, and the classifier of which training alone makes use. */
static bool is_left_out(const char *name)
{
    const char *dot = strrchr(name, '.');
    return (dot != NULL && strcmp(dot, ".num_batches_tracked") == 0) ||
           strncmp(name, "AuxLogits.", strlen("AuxLogits.")) == 0;
}

/* DenseNet's weights for ImageNet, as they are downloaded: "norm.1" of a layer is "norm1". */
static void take_old_name(char *name)
{
    static const char *const words[] = {".norm.1.", ".norm.2.", ".conv.1.", ".conv.2."};
    if (strstr(name, ".denselayer") == NULL)
        return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *at = strstr(name, words[i]), *dot = at != NULL ? at + strlen(".norm") : NULL;
        if (dot != NULL)
            memmove(dot, dot + 1, strlen(dot));
    }
}

static void clean(hpct_weights_st_index *index)
{
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++) {
        if (is_left_out(index->entries[i].name)) {
            free(index->entries[i].name);
        } else {
            take_old_name(index->entries[i].name);
            index->entries[kept++] = index->entries[i];
        }
    }
    index->count = kept;
}

/* Number of the model's parameters that are in the file. */
static size_t count_found(const hpct_model *form, const hpct_weights_st_index *index)
{
    size_t found = 0;
    for (int i = 0; i < form->num_params; i++)
        found += find_param(index, &form->params[i]) != NULL;
    return found;
}

/* The form that has exactly the file's names, or NULL. */
static hpct_status identify(const hpct_weights_st_index *index, const char **out)
{
    *out = NULL;
    for (int i = 0; hpct_builtin_torchvision(i) != NULL; i++) {
        hpct_model *form;
        HPCT_TRY(hpct_model_builtin(&form, hpct_builtin_torchvision(i)));
        if ((size_t) form->num_params == index->count && count_found(form, index) == index->count)
            *out = hpct_builtin_torchvision(i);
        hpct_model_free(form);
    }
    return HPCT_OK;
}

/* ---- where a parameter's values come from ---- */

/* The same normalization with the model's epsilon. */
static float epsilon_gap(const hpct_model *model, const hpct_graph_param *param,
                         const hpct_model *form, const hpct_graph_param *theirs)
{
    const hpct_op_spec *ours = &model->nodes[param->node].spec;
    return ours->kind == HPCT_OP_BATCH_NORM && strcmp(word_of(param), "moving_variance") == 0
               ? (float) ((double) form->nodes[theirs->node].spec.norm.epsilon -
                          (double) ours->norm.epsilon)
               : 0;
}

/* The picture that Flatten has made a row of for a dense layer; rank 1: there is none. */
static hpct_shape flattened(const hpct_model *model, const hpct_graph_param *param)
{
    const hpct_graph_tensor *input = &model->tensors[model->nodes[param->node].inputs[0]];
    bool is_view = strcmp(model->layers[input->layer].type, "Flatten") == 0;
    return is_view ? model->tensors[input->root].shape : input->shape;
}

static void set_axes(source *out, const int axes[HPCT_MAX_RANK])
{
    memcpy(out->axes, axes, sizeof out->axes);
}

static void find_layout(const hpct_model *model, const hpct_graph_param *param, source *out)
{
    const hpct_op_spec *spec = &model->nodes[param->node].spec;
    out->shape = param->shape;
    set_axes(out, (const int[HPCT_MAX_RANK]){0, 1, 2, 3});
    if (strcmp(word_of(param), "kernel") != 0)
        return;
    bool depthwise = spec->kind == HPCT_OP_CONV2D && spec->window.groups > 1;
    if (param->shape.rank == 4) {
        set_axes(out, depthwise ? (const int[HPCT_MAX_RANK]){2, 3, 0, 1}
                                : (const int[HPCT_MAX_RANK]){2, 3, 1, 0});
        return;
    }
    hpct_shape picture = flattened(model, param);
    set_axes(out, (const int[HPCT_MAX_RANK]){1, 0, 2, 3});
    if (picture.rank == 3) {
        out->shape =
            HPCT_SHAPE(picture.size[0], picture.size[1], picture.size[2], param->shape.size[1]);
        set_axes(out, (const int[HPCT_MAX_RANK]){2, 3, 1, 0});
    }
}

/* torch pools pictures of other sizes to as many cells, which no layer here does. */
static bool has_other_cells(const source *from, const hpct_graph_param *param)
{
    return from->shape.rank > param->shape.rank &&
           (from->shape.size[0] != VGG_CELLS || from->shape.size[1] != VGG_CELLS);
}

/* Parameters of the form and of the model are in the same order. */
static hpct_status find_sources(source *sources, const hpct_model *model, const hpct_model *form)
{
    int next = 0;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i], *theirs = &form->params[next];
        source *out = &sources[i];
        find_layout(model, param, out);
        bool is_bias = strcmp(word_of(param), "bias") == 0;
        if (next < form->num_params && strcmp(word_of(param), word_of(theirs)) == 0) {
            name_of(theirs, out->name, sizeof out->name);
            out->add = epsilon_gap(model, param, form, theirs);
            next++;
        } else if (!is_bias) {
            return hpct_fail(HPCT_ERR_INTERNAL, "%s has %s, and %s has not", model->name,
                             param->name, form->name);
        }
    }
    return HPCT_OK;
}

/* ---- renaming ---- */

static hpct_status rename_entry(hpct_weights_st_entry *entry, const hpct_graph_param *param,
                                const source *from)
{
    static const int dense[] = {1, 0};
    const int *axes = from->shape.rank > param->shape.rank ? dense : from->axes;
    char *name = strdup(param->name);
    int64_t shape[HPCT_WEIGHTS_ST_MAX_RANK];
    if (name == NULL)
        return hpct_fail_memory(strlen(param->name));
    free(entry->name);
    entry->name = name;
    memcpy(shape, entry->shape, sizeof shape);
    for (int k = 0; k < entry->rank && entry->rank == param->shape.rank; k++)
        entry->shape[k] = shape[axes[k]];
    if (has_other_cells(from, param))
        entry->rank = 0; /* as many in another order would not be noticed */
    return HPCT_OK;
}

/* Its kernel is as large, so that there is something to read. */
static hpct_status add_bias(hpct_weights_st_index *index, const hpct_graph_param *param)
{
    hpct_weights_st_entry *grown = realloc(index->entries, (index->count + 1) * sizeof *grown);
    if (grown == NULL)
        return hpct_fail_memory((index->count + 1) * sizeof *grown);
    index->entries = grown;
    hpct_weights_st_entry *entry = &grown[index->count];
    *entry = (hpct_weights_st_entry){.name = strdup(param->name),
                                     .is_f32 = true,
                                     .dtype = "F32",
                                     .rank = 1,
                                     .shape = {param->shape.size[0]}};
    if (entry->name == NULL)
        return hpct_fail_memory(strlen(param->name));
    index->count++;
    return HPCT_OK;
}

static hpct_status rename_all(const source *sources, const hpct_model *model,
                              hpct_weights_st_index *index, const char *path, bool fitting)
{
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        const source *from = &sources[i];
        const hpct_weights_st_entry *entry =
            from->name[0] != '\0' ? hpct_weights_st_find(index, from->name) : NULL;
        if (has_other_cells(from, param) && !fitting)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: torchvision's %s is of pictures of 224x224 to 255x255, which "
                             "have %dx%d cells there, not %dx%d: give --resize 224x224",
                             path, from->name, VGG_CELLS, VGG_CELLS, from->shape.size[1],
                             from->shape.size[0]);
        if (entry != NULL)
            HPCT_TRY(rename_entry(&index->entries[entry - index->entries], param, from));
        else if (from->name[0] == '\0')
            HPCT_TRY(add_bias(index, param));
    }
    return HPCT_OK;
}

/* ---- both ---- */

static hpct_status adopt(hpct_weights_torch *out, const hpct_model *model, const hpct_model *form,
                         hpct_weights_st_index *index, const char *path, bool fitting)
{
    if (count_found(form, index) == 0)
        return HPCT_OK;
    out->sources = calloc((size_t) model->num_params + 1, sizeof *out->sources);
    if (out->sources == NULL)
        return hpct_fail_memory((size_t) model->num_params * sizeof *out->sources);
    HPCT_TRY(find_sources(out->sources, model, form));
    return rename_all(out->sources, model, index, path, fitting);
}

hpct_status hpct_weights_torch_adopt(hpct_weights_torch *out, const hpct_model *model,
                                     hpct_weights_st_index *index, const char *path, bool fitting)
{
    const char *is;
    *out = (hpct_weights_torch){0};
    if (!is_state_dict(model, index))
        return HPCT_OK;
    clean(index);
    HPCT_TRY(identify(index, &is));
    if (is != NULL && (model->torchvision == NULL || strcmp(is, model->torchvision) != 0))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s has weights of torchvision, which --model %s takes; this model is %s",
                         path, is, model->name);
    if (model->torchvision == NULL)
        return HPCT_OK;
    hpct_model *form;
    HPCT_TRY(hpct_model_builtin(&form, model->torchvision));
    hpct_status status = adopt(out, model, form, index, path, fitting);
    hpct_model_free(form);
    return status;
}

void hpct_weights_torch_free(hpct_weights_torch *torch)
{
    free(torch->sources);
    torch->sources = NULL;
}

/* ---- values ---- */

static void permute(const source *by, const float *from, float *to)
{
    const hpct_shape *shape = &by->shape;
    size_t count = hpct_graph_shape_count(shape), at[HPCT_MAX_RANK] = {0},
           steps[HPCT_MAX_RANK] = {0};
    for (int k = 0; k < shape->rank; k++) {
        size_t step = 1; /* all axes of the tensor behind axes[k] */
        for (int j = 0; j < shape->rank; j++)
            step *= by->axes[j] > by->axes[k] ? (size_t) shape->size[j] : 1;
        steps[k] = step;
    }
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        for (int k = 0; k < shape->rank; k++)
            index += at[k] * steps[k];
        to[i] = from[index] + by->add;
        for (int k = shape->rank - 1; k >= 0 && ++at[k] == (size_t) shape->size[k]; k--)
            at[k] = 0;
    }
}

hpct_status hpct_weights_torch_convert(const hpct_weights_torch *torch, const hpct_model *model,
                                       float **values)
{
    for (int i = 0; i < model->num_params && torch->sources != NULL; i++) {
        size_t count = hpct_graph_shape_count(&model->params[i].shape);
        if (values[i] == NULL)
            continue;
        float *turned = calloc(count, sizeof *turned);
        if (turned == NULL)
            return hpct_fail_memory(count * sizeof *turned);
        if (torch->sources[i].name[0] != '\0')
            permute(&torch->sources[i], values[i], turned);
        free(values[i]);
        values[i] = turned;
    }
    return HPCT_OK;
}
