/* Weights in safetensors files. */
#include "nn/file/weights.h"

#include "base/file.h"
#include "base/status.h"
#include "nn/file/safetensors.h"
#include "nn/file/torchvision.h"
#include "nn/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t param_bytes(const hpct_graph_param *param)
{
    return hpct_graph_shape_count(&param->shape) * sizeof(float);
}

/* ---- saving ---- */

static hpct_status write_header(const hpct_model *model, int fd, const char *path)
{
    size_t count = (size_t) model->num_params, length = 0;
    hpct_weights_st_entry *entries = calloc(count + 1, sizeof *entries);
    if (entries == NULL)
        return hpct_fail_memory((count + 1) * sizeof *entries);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        hpct_graph_param *param = &model->params[i];
        entries[i].name = param->name;
        strcpy(entries[i].dtype, "F32");
        entries[i].rank = param->shape.rank;
        for (int k = 0; k < param->shape.rank; k++)
            entries[i].shape[k] = param->shape.size[k];
        entries[i].begin = at;
        entries[i].end = at += param_bytes(param);
    }
    char *header = NULL;
    const hpct_weights_st_text texts[] = {
        {"class_names", model->class_names}, {"trained_with", model->trained_with}, {NULL, NULL}};
    hpct_status status = hpct_weights_st_format(&header, &length, entries, count, texts);
    if (status == HPCT_OK)
        status = hpct_file_write_all(fd, header, length, path);
    free(header);
    free(entries);
    return status;
}

static hpct_status write_params(const hpct_model *model, int fd, const char *path)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        size_t bytes = param_bytes(&model->params[i]);
        float *values = malloc(bytes);
        if (values == NULL)
            return hpct_fail_memory(bytes);
        status = hpct_run_param_get(model, i, values);
        if (status == HPCT_OK)
            status = hpct_file_write_all(fd, values, bytes, path);
        free(values);
    }
    return status;
}

hpct_status hpct_weights_safetensors_save(const hpct_model *model, int fd, const char *path)
{
    HPCT_TRY(write_header(model, fd, path));
    return write_params(model, fd, path);
}

/* ---- loading ---- */

static hpct_status read_index(int fd, const char *path, hpct_weights_st_index *index)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return hpct_file_failed("reading", path);
    if (!S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s is not a file", path);
    return hpct_weights_st_read(index, fd, (uint64_t) info.st_size, path);
}

static bool all_begin_with(const hpct_weights_st_index *index, const char *word)
{
    size_t count = 0;
    while (count < index->count && strncmp(index->entries[count].name, word, strlen(word)) == 0)
        count++;
    return count > 0 && count == index->count;
}

/* torch.nn.DataParallel and torch.compile put a word before the names of all tensors, in any order.
 */
static void strip_wrappers(hpct_weights_st_index *index)
{
    static const char *const words[] = {"module.", "_orig_mod.", "module."};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t length = strlen(words[w]);
        if (!all_begin_with(index, words[w]))
            continue;
        for (size_t i = 0; i < index->count; i++) {
            char *name = index->entries[i].name;
            memmove(name, name + length, strlen(name + length) + 1);
        }
    }
}

static hpct_status check_entry(const hpct_graph_param *param, const hpct_weights_st_entry *entry,
                               const char *path)
{
    if (entry == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" is missing" HPCT_KERAS_WEIGHTS_HINT,
                         path, param->name);
    if (!entry->is_f32)
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" is %s, not F32", path, param->name,
                         entry->dtype);
    bool same = entry->rank == param->shape.rank;
    for (int i = 0; same && i < entry->rank; i++)
        same = entry->shape[i] == param->shape.size[i];
    if (same)
        return HPCT_OK;
    char text[HPCT_GRAPH_SHAPE_TEXT];
    hpct_graph_shape_format(&param->shape, text);
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: tensor \"%s\" does not have the model's shape %s" HPCT_KERAS_WEIGHTS_HINT,
                     path, param->name, text);
}

static hpct_status check_index(const hpct_model *model, const hpct_weights_st_index *index,
                               const char *path)
{
    for (int i = 0; i < model->num_params; i++) {
        const hpct_graph_param *param = &model->params[i];
        HPCT_TRY(check_entry(param, hpct_weights_st_find(index, param->name), path));
    }
    for (size_t k = 0; k < index->count; k++) {
        bool known = false;
        for (int i = 0; i < model->num_params; i++)
            known |= strcmp(model->params[i].name, index->entries[k].name) == 0;
        if (!known)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the model has no \"%.80s\"" HPCT_KERAS_WEIGHTS_HINT, path,
                             index->entries[k].name);
    }
    return HPCT_OK;
}

static hpct_status read_param(const hpct_graph_param *param, int fd, const char *path,
                              const hpct_weights_st_index *index, float **values)
{
    size_t bytes = param_bytes(param);
    *values = malloc(bytes);
    if (*values == NULL)
        return hpct_fail_memory(bytes);
    uint64_t at = index->data_at + hpct_weights_st_find(index, param->name)->begin;
    return hpct_file_read_all(fd, *values, bytes, (long long) at, path);
}

static hpct_status read_params(const hpct_model *model, int fd, const char *path,
                               const hpct_weights_st_index *index, float **values)
{
    for (int i = 0; i < model->num_params; i++)
        HPCT_TRY(read_param(&model->params[i], fd, path, index, &values[i]));
    return HPCT_OK;
}

/* ---- loading what fits ---- */

static bool is_of(const hpct_model *model, int param, int layer)
{
    return model->nodes[model->params[param].node].layer == layer;
}

/* Why a layer is not loaded: its first weight that does not fit; "": all do. */
static void find_misfit(const hpct_model *model, int layer, const hpct_weights_st_index *index,
                        char why[HPCT_GRAPH_SHAPE_TEXT + 64])
{
    size_t size = HPCT_GRAPH_SHAPE_TEXT + 64;
    why[0] = '\0';
    for (int i = 0; i < model->num_params && why[0] == '\0'; i++) {
        const hpct_graph_param *param = &model->params[i];
        const char *word = strrchr(param->name, '/') + 1;
        if (!is_of(model, i, layer))
            continue;
        const hpct_weights_st_entry *entry = hpct_weights_st_find(index, param->name);
        if (entry == NULL)
            snprintf(why, size, "%.24s is missing", word);
        else if (check_entry(param, entry, "") != HPCT_OK)
            snprintf(why, size, "%.24s: another %s", word, entry->is_f32 ? "shape" : "type");
    }
}

static hpct_status load_layer(const hpct_model *model, int layer, int fd, const char *path,
                              const hpct_weights_st_index *index, float **values,
                              hpct_keras_skips *skips)
{
    char why[HPCT_GRAPH_SHAPE_TEXT + 64];
    find_misfit(model, layer, index, why);
    if (why[0] != '\0')
        return hpct_keras_skips_add(skips, "%s (%s)", model->layers[layer].name, why);
    for (int i = 0; i < model->num_params; i++) {
        if (is_of(model, i, layer))
            HPCT_TRY(read_param(&model->params[i], fd, path, index, &values[i]));
    }
    skips->loaded++;
    return HPCT_OK;
}

static hpct_status read_fitting(const hpct_model *model, int fd, const char *path,
                                const hpct_weights_st_index *index, float **values,
                                hpct_keras_skips *skips)
{
    for (int layer = 0; layer < model->num_layers; layer++) {
        if (model->layers[layer].parameters > 0)
            HPCT_TRY(load_layer(model, layer, fd, path, index, values, skips));
    }
    hpct_status status = hpct_keras_skips_end(skips);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, path);
}

/* ---- both ---- */

/* skips NULL: all must fit. */
static hpct_status load(const hpct_model *model, const char *path, float **values,
                        hpct_weights_source *source, hpct_keras_skips *skips)
{
    hpct_weights_st_index index = {0};
    hpct_weights_torch torch = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = read_index(fd, path, &index);
    strip_wrappers(&index);
    if (status == HPCT_OK)
        status = hpct_weights_torch_adopt(&torch, model, &index, path, skips != NULL);
    if (status == HPCT_OK && skips == NULL)
        status = check_index(model, &index, path);
    if (status == HPCT_OK)
        status = skips == NULL ? read_params(model, fd, path, &index, values)
                               : read_fitting(model, fd, path, &index, values, skips);
    if (status == HPCT_OK)
        status = hpct_weights_torch_convert(&torch, model, values);
    *source = (hpct_weights_source){.class_names = index.class_names,
                                    .trained_with = index.trained_with,
                                    .is_torch = torch.sources != NULL};
    index.class_names = index.trained_with = NULL;
    hpct_weights_torch_free(&torch);
    hpct_weights_st_free(&index);
    close(fd);
    return status;
}

hpct_status hpct_weights_safetensors_load(const hpct_model *model, const char *path, float **values,
                                          hpct_weights_source *source)
{
    return load(model, path, values, source, NULL);
}

hpct_status hpct_weights_safetensors_load_fitting(const hpct_model *model, const char *path,
                                                  float **values, hpct_weights_source *source,
                                                  hpct_keras_skips *skips)
{
    return load(model, path, values, source, skips);
}

hpct_status hpct_weights_safetensors_trained_with(const char *path, char **text)
{
    hpct_weights_st_index index;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *text = NULL;
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    hpct_status status = read_index(fd, path, &index);
    if (status == HPCT_OK) {
        *text = index.trained_with;
        index.trained_with = NULL;
        hpct_weights_st_free(&index);
    }
    close(fd);
    return status;
}
