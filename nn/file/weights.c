/* Weight files: saved atomically (the file is complete or absent), loaded atomically (the model is
 * changed completely or not at all). The name's suffix selects the format to save. */
#include "nn/file/weights.h"

#include "base/kind.h"
#include "base/output.h"
#include "base/status.h"
#include "nn/file/keras/weights_h5.h"
#include "nn/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);
    return length >= size && strcmp(path + length - size, end) == 0;
}

/* ---- saving ---- */

typedef struct saving {
    const hpct_model *model;
    const char *path;
} saving;

static hpct_status save_safetensors(void *arg, int fd)
{
    const saving *s = arg;
    return hpct_weights_safetensors_save(s->model, fd, s->path);
}

static hpct_status save_h5(void *arg, int fd)
{
    const saving *s = arg;
    return hpct_keras_h5_save(s->model, fd, s->path);
}

/* Suffixes by which other programs expect another format. */
static bool is_of_others(const char *path)
{
    static const char *const ends[] = {".keras", ".hdf5",   ".npz", ".npy",  ".pt",     ".pth",
                                       ".ckpt",  ".pb",     ".bin", ".onnx", ".tflite", ".pkl",
                                       ".json",  ".pickle", ".zip", ".tar",  ".gz"};
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end != NULL && i < sizeof ends / sizeof *ends; i++) {
        if (strcasecmp(end, ends[i]) == 0)
            return true;
    }
    return false;
}

hpct_status hpct_model_check_weights_name(const char *path)
{
    const char *end = strrchr(path, '.');
    bool h5 = end != NULL && strcasecmp(end, ".h5") == 0;
    if (is_of_others(path))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s: weights are written as .safetensors or .weights.h5, not as %s: give "
                         "a name that ends so",
                         path, end);
    if (!h5)
        return HPCT_OK;
    if (!ends_with(path, ".weights.h5"))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s: Keras opens weights only under names that end in .weights.h5", path);
    hpct_status status = hpct_keras_h5_available();
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
}

static hpct_output_writer *writer_for(const char *path)
{
    return ends_with(path, ".h5") ? save_h5 : save_safetensors;
}

hpct_status hpct_model_save_weights(const hpct_model *model, const char *path)
{
    HPCT_TRY(hpct_model_check_weights_name(path));
    return hpct_output_replace(path, writer_for(path), &(saving){model, path});
}

hpct_status hpct_model_rescue_weights(const hpct_model *model, const char *path, bool synced)
{
    HPCT_TRY(hpct_model_check_weights_name(path));
    return hpct_output_rescue(path, writer_for(path), &(saving){model, path}, synced);
}

hpct_status hpct_model_check_finite(const hpct_model *model)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        const hpct_graph_param *param = &model->params[i];
        size_t count = hpct_graph_shape_count(&param->shape);
        float *values = malloc(count * sizeof *values);
        if (values == NULL)
            return hpct_fail_memory(count * sizeof *values);
        status = hpct_run_param_get(model, i, values);
        for (size_t k = 0; k < count && status == HPCT_OK; k++) {
            if (!isfinite(values[k]))
                status =
                    hpct_fail(HPCT_ERR_DATA, "\"%s\" has numbers that are not finite", param->name);
        }
        free(values);
    }
    return status;
}

/* ---- loading ---- */

/* Values of each parameter. The format is detected from the file's first bytes, else from its
 * name. skips, here and below: NULL if all must fit. */
static hpct_status load_values(const hpct_model *model, const char *path, float **values,
                               hpct_weights_source *source, hpct_keras_skips *skips)
{
    hpct_kind kind = HPCT_KIND_UNKNOWN;
    HPCT_TRY(hpct_kind_of_file(&kind, path));
    if (kind == HPCT_KIND_HDF5 || (kind == HPCT_KIND_UNKNOWN && ends_with(path, ".h5"))) {
        hpct_keras_h5_texts texts = {0};
        hpct_status status = hpct_keras_h5_read(model, path, values, &texts, skips);
        source->class_names = texts.class_names;
        source->trained_with = texts.trained_with;
        return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
    }
    if (kind == HPCT_KIND_SAFETENSORS || kind == HPCT_KIND_UNKNOWN)
        return skips == NULL
                   ? hpct_weights_safetensors_load(model, path, values, source)
                   : hpct_weights_safetensors_load_fitting(model, path, values, source, skips);
    return hpct_fail(HPCT_ERR_DATA, "%s is %s", path, hpct_kind_says(kind));
}

static hpct_status check_finite(const hpct_graph_param *param, const float *values,
                                const char *path)
{
    size_t count = hpct_graph_shape_count(&param->shape), odd = 0;
    for (size_t i = 0; i < count; i++)
        odd += isfinite(values[i]) ? 0 : 1;
    if (odd == 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: %zu of the %zu numbers of \"%s\" are NaN or infinite, as when training "
                     "has diverged: take weights from before (or these all the same: --allow-nan)",
                     path, odd, count, param->name);
}

/* Whether the last parameter, of the head, was in the file: only then the model has its classes. */
static bool has_head(const hpct_model *model, float *const *values)
{
    return model->num_params == 0 || values[model->num_params - 1] != NULL;
}

static void take_texts(hpct_model *model, hpct_weights_source *source, bool head)
{
    free(model->trained_with);
    model->trained_with = source->trained_with;
    source->trained_with = NULL;
    if (!head)
        return;
    free(model->class_names);
    model->class_names = source->class_names;
    source->class_names = NULL;
}

static hpct_status load(hpct_model *model, const char *path, bool all, hpct_keras_skips *skips)
{
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before weights are loaded",
                         model->name);
    size_t count = (size_t) model->num_params + 1;
    hpct_weights_source source = {0};
    float **values = calloc(count, sizeof *values);
    if (values == NULL)
        return hpct_fail_memory(count * sizeof *values);
    hpct_status status = load_values(model, path, values, &source, skips);
    for (int i = 0; i < model->num_params && status == HPCT_OK && !all; i++)
        status = values[i] != NULL ? check_finite(&model->params[i], values[i], path) : HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++)
        status = values[i] != NULL ? hpct_run_param_set(model, i, values[i]) : HPCT_OK;
    if (status == HPCT_OK)
        take_texts(model, &source, has_head(model, values));
    free(source.class_names);
    free(source.trained_with);
    if (status == HPCT_OK)
        model->has_torch_weights = source.is_torch;
    for (int i = 0; i < model->num_params; i++)
        free(values[i]);
    free(values);
    return status;
}

hpct_status hpct_model_load_weights(hpct_model *model, const char *path)
{
    return load(model, path, false, NULL);
}

hpct_status hpct_model_load_any_weights(hpct_model *model, const char *path)
{
    return load(model, path, true, NULL);
}

hpct_status hpct_model_load_weights_with(hpct_model *model, const char *path,
                                         const hpct_load_options *options)
{
    hpct_keras_skips skips = {0};
    hpct_status status =
        load(model, path, options->allow_nan, options->skip_mismatch ? &skips : NULL);
    if (status == HPCT_OK && options->skipped != NULL) {
        *options->skipped = skips.text != NULL ? skips.text : strdup("");
        skips.text = NULL;
        status = *options->skipped != NULL ? HPCT_OK : hpct_fail_memory(1);
    }
    free(skips.text);
    return status;
}

hpct_status hpct_weights_trained_with(const char *path, char **text)
{
    hpct_kind kind = HPCT_KIND_UNKNOWN;
    *text = NULL;
    HPCT_TRY(hpct_kind_of_file(&kind, path));
    if (kind == HPCT_KIND_SAFETENSORS)
        return hpct_weights_safetensors_trained_with(path, text);
    if (kind != HPCT_KIND_HDF5)
        return HPCT_OK;
    hpct_keras_h5_texts texts = {0};
    hpct_status status = hpct_keras_h5_read(NULL, path, NULL, &texts, NULL);
    *text = texts.trained_with;
    free(texts.class_names);
    return status;
}
