/* A model's weights in a file: saved so that the file is whole or absent, loaded so that the model
 * is changed wholly or not at all. The name's end chooses the format. */
#include "nn/weights.h"

#include "base/status.h"
#include "nn/keras/weights_h5.h"
#include "nn/output.h"
#include "nn/run.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return hpct_safetensors_save(s->model, fd, s->path);
}

static hpct_status save_h5(void *arg, int fd)
{
    const saving *s = arg;
    return hpct_h5_save(s->model, fd, s->path);
}

hpct_status hpct_model_check_weights_name(const char *path)
{
    if (!ends_with(path, ".h5"))
        return HPCT_OK;
    if (!ends_with(path, ".weights.h5"))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s: Keras opens weights only under names that end in .weights.h5", path);
    hpct_status status = hpct_h5_available();
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
}

static hpct_status save(const hpct_model *model, const char *path,
                        hpct_status (*put)(const char *, hpct_output_writer *, void *))
{
    saving s = {model, path};
    hpct_status status = hpct_model_check_weights_name(path);
    if (status != HPCT_OK)
        return status;
    return put(path, ends_with(path, ".h5") ? save_h5 : save_safetensors, &s);
}

hpct_status hpct_model_save_weights(const hpct_model *model, const char *path)
{
    return save(model, path, hpct_output_replace);
}

hpct_status hpct_model_rescue_weights(const hpct_model *model, const char *path)
{
    return save(model, path, hpct_output_rescue);
}

hpct_status hpct_model_check_finite(const hpct_model *model)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        const hpct_param *param = &model->params[i];
        size_t count = hpct_shape_count(&param->shape);
        float *values = malloc(count * sizeof *values);
        if (values == NULL)
            return hpct_fail_memory(count * sizeof *values);
        status = hpct_param_get(model, i, values);
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

static hpct_status load_h5(const hpct_model *model, const char *path, float **values)
{
    struct stat info;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s is not a file", path);
    hpct_status status = hpct_h5_load(model, path, values);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
}

hpct_status hpct_model_load_weights(hpct_model *model, const char *path)
{
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before weights are loaded",
                         model->name);
    size_t count = (size_t) model->num_params + 1;
    float **values = calloc(count, sizeof *values);
    if (values == NULL)
        return hpct_fail_memory(count * sizeof *values);
    hpct_status status = ends_with(path, ".h5") ? load_h5(model, path, values)
                                                : hpct_safetensors_load(model, path, values);
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++)
        status = hpct_param_set(model, i, values[i]);
    for (int i = 0; i < model->num_params; i++)
        free(values[i]);
    free(values);
    return status;
}
