/* torch has kernels as [out][in][height][width] and [out][in]; its convolutions have no bias. */
#include "nn/file/torchvision.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORCH_EPSILON 1e-5 /* of its normalizations */

/* Where a parameter's values come from. */
typedef struct source {
    char name[80];           /* "layer1.0.conv1.weight"; "": zeros, as torch has no such bias */
    int axes[HPCT_MAX_RANK]; /* axis k of the parameter is this one of the tensor */
    float add;               /* to each value */
} source;

/* ---- names ---- */

/* Names of a normalization's parameters. */
static const char *norm_name(const char *what)
{
    static const char *const names[][2] = {{"gamma", "weight"},
                                           {"beta", "bias"},
                                           {"moving_mean", "running_mean"},
                                           {"moving_variance", "running_var"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(what, names[i][0]) == 0)
            return names[i][1];
    }
    return NULL;
}

/* torch's name of a layer: "conv1", "layer1.0.bn2", "layer1.0.downsample.0", "fc". */
static bool layer_name(char *to, size_t size, const char *layer, bool *is_norm)
{
    int stack, block, part, end = 0;
    char kind[8];
    *is_norm = strcmp(layer, "conv1_bn") == 0;
    if (*is_norm || strcmp(layer, "conv1_conv") == 0 || strcmp(layer, "predictions") == 0) {
        snprintf(to, size, "%s", *is_norm ? "bn1" : layer[0] == 'c' ? "conv1" : "fc");
        return true;
    }
    if (sscanf(layer, "conv%d_block%d_%d_%7s%n", &stack, &block, &part, kind, &end) != 4 ||
        layer[end] != '\0' || stack < 2 || block < 1 || part < 0 || part > 3)
        return false;
    *is_norm = strcmp(kind, "bn") == 0;
    if (!*is_norm && strcmp(kind, "conv") != 0)
        return false;
    if (part == 0)
        snprintf(to, size, "layer%d.%d.downsample.%d", stack - 1, block - 1, *is_norm);
    else
        snprintf(to, size, "layer%d.%d.%s%d", stack - 1, block - 1, kind, part);
    return true;
}

/* The same normalization with the model's epsilon. */
static float epsilon_gap(const hpct_model *model, const hpct_param *param)
{
    const hpct_op_spec *spec = &model->nodes[param->node].spec;
    return spec->kind == HPCT_OP_BATCH_NORM ? (float) (TORCH_EPSILON - (double) spec->norm.epsilon)
                                            : 0;
}

/* False if the parameter is none of resnet50's. */
static bool find_source(const hpct_model *model, int param, source *out)
{
    const hpct_param *p = &model->params[param];
    const char *slash = strrchr(p->name, '/'), *what = slash + 1;
    char layer[sizeof p->name], torch[48];
    bool is_norm;
    *out = (source){.axes = {0, 1, 2, 3}};
    snprintf(layer, sizeof layer, "%.*s", (int) (slash - p->name), p->name);
    if (!layer_name(torch, sizeof torch, layer, &is_norm))
        return false;
    if (is_norm) {
        const char *name = norm_name(what);
        if (name == NULL)
            return false;
        snprintf(out->name, sizeof out->name, "%s.%s", torch, name);
        out->add = strcmp(what, "moving_variance") == 0 ? epsilon_gap(model, p) : 0;
        return true;
    }
    bool dense = strcmp(torch, "fc") == 0, kernel = strcmp(what, "kernel") == 0;
    if (kernel)
        memcpy(out->axes, dense ? (const int[]){1, 0, 2, 3} : (const int[]){2, 3, 1, 0},
               sizeof out->axes);
    if (kernel || dense)
        snprintf(out->name, sizeof out->name, "%s.%s", torch, kernel ? "weight" : "bias");
    return true;
}

/* ---- an index ---- */

static const hpct_st_entry *find(const hpct_st_index *index, const char *name)
{
    for (size_t i = 0; i < index->count; i++) {
        if (strcmp(index->entries[i].name, name) == 0)
            return &index->entries[i];
    }
    return NULL;
}

bool hpct_torch_is(const hpct_model *model, const hpct_st_index *index)
{
    for (int i = 0; i < model->num_params; i++) {
        if (find(index, model->params[i].name) != NULL)
            return false;
    }
    return find(index, "conv1.weight") != NULL && find(index, "layer1.0.conv1.weight") != NULL;
}

/* Batches seen: inference does not use them. */
static bool is_counter(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && strcmp(dot, ".num_batches_tracked") == 0;
}

static void drop_counters(hpct_st_index *index)
{
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++) {
        if (is_counter(index->entries[i].name))
            free(index->entries[i].name);
        else
            index->entries[kept++] = index->entries[i];
    }
    index->count = kept;
}

static hpct_status rename_entry(hpct_st_entry *entry, const hpct_param *param, const source *from)
{
    char *name = strdup(param->name);
    int64_t shape[HPCT_ST_MAX_RANK];
    if (name == NULL)
        return hpct_fail_memory(strlen(param->name));
    free(entry->name);
    entry->name = name;
    memcpy(shape, entry->shape, sizeof shape);
    for (int k = 0; k < entry->rank && entry->rank == param->shape.rank; k++)
        entry->shape[k] = shape[from->axes[k]];
    return HPCT_OK;
}

/* Its kernel is as large, so that there is something to read. */
static hpct_status add_bias(hpct_st_index *index, const hpct_param *param)
{
    hpct_st_entry *grown = realloc(index->entries, (index->count + 1) * sizeof *grown);
    if (grown == NULL)
        return hpct_fail_memory((index->count + 1) * sizeof *grown);
    index->entries = grown;
    hpct_st_entry *entry = &grown[index->count];
    *entry = (hpct_st_entry){.name = strdup(param->name),
                             .is_f32 = true,
                             .dtype = "F32",
                             .rank = 1,
                             .shape = {param->shape.size[0]}};
    if (entry->name == NULL)
        return hpct_fail_memory(strlen(param->name));
    index->count++;
    return HPCT_OK;
}

hpct_status hpct_torch_adopt(const hpct_model *model, hpct_st_index *index, const char *path)
{
    source from;
    drop_counters(index);
    for (int i = 0; i < model->num_params; i++) {
        const hpct_param *param = &model->params[i];
        if (!find_source(model, i, &from))
            return hpct_fail(HPCT_ERR_DATA,
                             "%s has weights of torchvision, which --model resnet50 takes; this "
                             "model has \"%s\"",
                             path, param->name);
        const hpct_st_entry *entry = from.name[0] != '\0' ? find(index, from.name) : NULL;
        if (entry != NULL)
            HPCT_TRY(rename_entry(&index->entries[entry - index->entries], param, &from));
        else if (from.name[0] == '\0')
            HPCT_TRY(add_bias(index, param));
    }
    return HPCT_OK;
}

/* ---- values ---- */

static void permute(const hpct_shape *shape, const source *by, const float *from, float *to)
{
    size_t count = hpct_shape_count(shape), at[HPCT_MAX_RANK] = {0}, steps[HPCT_MAX_RANK] = {0};
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

hpct_status hpct_torch_convert(const hpct_model *model, float **values)
{
    source from;
    for (int i = 0; i < model->num_params; i++) {
        const hpct_shape *shape = &model->params[i].shape;
        size_t count = hpct_shape_count(shape);
        if (values[i] == NULL || !find_source(model, i, &from))
            continue;
        float *turned = calloc(count, sizeof *turned);
        if (turned == NULL)
            return hpct_fail_memory(count * sizeof *turned);
        if (from.name[0] != '\0')
            permute(shape, &from, values[i], turned);
        free(values[i]);
        values[i] = turned;
    }
    return HPCT_OK;
}
