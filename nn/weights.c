/* A model's weights in a safetensors file: saved so that the file is whole or absent, loaded so
 * that the model is changed wholly or not at all. */
#include "nn/run.h"
#include "nn/safetensors.h"

#include "base/status.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "weights are written as they lie in memory");

static size_t param_bytes(const hpct_param *param)
{
    return hpct_shape_count(&param->shape) * sizeof(float);
}

static hpct_status io_failed(const char *what, const char *path)
{
    return hpct_fail(HPCT_ERR_IO, "%s: %s failed: %s", path, what, strerror(errno));
}

/* ---- saving ---- */

static hpct_status write_all(int fd, const void *data, size_t bytes, const char *path)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return io_failed("writing", path);
        at += written;
        bytes -= (size_t) written;
    }
    return HPCT_OK;
}

static hpct_status write_header(const hpct_model *model, int fd, const char *path)
{
    size_t count = (size_t) model->num_params, length = 0;
    hpct_st_entry *entries = calloc(count + 1, sizeof *entries);
    if (entries == NULL)
        return hpct_fail_memory((count + 1) * sizeof *entries);
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        hpct_param *param = &model->params[i];
        entries[i].name = param->name;
        entries[i].rank = param->shape.rank;
        for (int k = 0; k < param->shape.rank; k++)
            entries[i].shape[k] = param->shape.size[k];
        entries[i].begin = at;
        entries[i].end = at += param_bytes(param);
    }
    char *header = NULL;
    hpct_status status = hpct_st_format(&header, &length, entries, count);
    uint64_t length_field = length;
    if (status == HPCT_OK)
        status = write_all(fd, &length_field, sizeof length_field, path);
    if (status == HPCT_OK)
        status = write_all(fd, header, length, path);
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
        status = hpct_param_get(model, i, values);
        if (status == HPCT_OK)
            status = write_all(fd, values, bytes, path);
        free(values);
    }
    return status;
}

/* A rename is only safe on disk when its folder is. */
static hpct_status sync_folder(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return hpct_fail_memory(strlen(path) + 1);
    const char *folder = dirname(copy);
    hpct_status status = HPCT_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: a file system whose folders cannot be synced, and need not be */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = io_failed("syncing the folder", folder);
    if (fd >= 0)
        close(fd);
    free(copy);
    return status;
}

/* A new file beside `path`; mode 0666 and the umask, as for any other file of the user. */
static int create_beside(const char *path, char *temporary, size_t size)
{
    for (int i = 0; i < 100; i++) {
        snprintf(temporary, size, "%s.tmp%d-%ld", path, i, (long) getpid());
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static hpct_status write_file(const hpct_model *model, int fd, const char *path)
{
    hpct_status status = write_header(model, fd, path);
    if (status == HPCT_OK)
        status = write_params(model, fd, path);
    if (status == HPCT_OK && fsync(fd) != 0)
        status = io_failed("syncing", path);
    return status;
}

hpct_status hpct_model_save_weights(const hpct_model *model, const char *path)
{
    size_t size = strlen(path) + 48;
    char *temporary = malloc(size);
    if (temporary == NULL)
        return hpct_fail_memory(size);
    int fd = create_beside(path, temporary, size);
    if (fd < 0) {
        hpct_status failed = io_failed("creating a file beside it", path);
        free(temporary);
        return failed;
    }
    hpct_status status = write_file(model, fd, path);
    if (close(fd) != 0 && status == HPCT_OK)
        status = io_failed("closing", path);
    if (status == HPCT_OK && rename(temporary, path) != 0)
        status = io_failed("renaming", path);
    if (status == HPCT_OK)
        status = sync_folder(path);
    else
        unlink(temporary);
    free(temporary);
    return status;
}

/* ---- loading ---- */

static hpct_status read_all(int fd, void *data, size_t bytes, off_t at, const char *path)
{
    char *to = data;
    while (bytes > 0) {
        ssize_t got = pread(fd, to, bytes, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_failed("reading", path);
        if (got == 0)
            return hpct_fail(HPCT_ERR_DATA, "%s: the file ends early", path);
        to += got;
        at += got;
        bytes -= (size_t) got;
    }
    return HPCT_OK;
}

/* The index of the file, and where its data start. */
static hpct_status read_index(int fd, const char *path, hpct_st_index *index, off_t *data_at)
{
    struct stat info;
    uint64_t length;
    if (fstat(fd, &info) != 0)
        return io_failed("reading", path);
    if (!S_ISREG(info.st_mode))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s is not a file", path);
    uint64_t size = (uint64_t) info.st_size;
    if (size < sizeof length)
        return hpct_fail(HPCT_ERR_DATA, "%s: too short for a safetensors file", path);
    hpct_status status = read_all(fd, &length, sizeof length, 0, path);
    if (status != HPCT_OK)
        return status;
    if (length > HPCT_ST_MAX_HEADER || length > size - sizeof length)
        return hpct_fail(HPCT_ERR_DATA, "%s: not a safetensors file (header of %llu bytes)", path,
                         (unsigned long long) length);
    char *header = malloc(length + 1);
    if (header == NULL)
        return hpct_fail_memory(length + 1);
    status = read_all(fd, header, length, sizeof length, path);
    if (status == HPCT_OK) {
        status = hpct_st_parse(index, header, length, size - sizeof length - length);
        if (status != HPCT_OK)
            hpct_fail_within(status, path);
    }
    free(header);
    *data_at = (off_t) (sizeof length + length);
    return status;
}

static const hpct_st_entry *find(const hpct_st_index *index, const char *name)
{
    for (size_t i = 0; i < index->count; i++) {
        if (strcmp(index->entries[i].name, name) == 0)
            return &index->entries[i];
    }
    return NULL;
}

static hpct_status check_entry(const hpct_param *param, const hpct_st_entry *entry,
                               const char *path)
{
    if (entry == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" is missing", path, param->name);
    if (!entry->is_f32)
        return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" is %s, not F32", path, param->name,
                         entry->dtype);
    bool same = entry->rank == param->shape.rank;
    for (int i = 0; same && i < entry->rank; i++)
        same = entry->shape[i] == param->shape.size[i];
    if (same)
        return HPCT_OK;
    char text[HPCT_SHAPE_TEXT];
    hpct_shape_format(&param->shape, text);
    return hpct_fail(HPCT_ERR_DATA, "%s: tensor \"%s\" does not have the model's shape %s", path,
                     param->name, text);
}

static hpct_status check_index(const hpct_model *model, const hpct_st_index *index,
                               const char *path)
{
    for (int i = 0; i < model->num_params; i++) {
        const hpct_param *param = &model->params[i];
        hpct_status status = check_entry(param, find(index, param->name), path);
        if (status != HPCT_OK)
            return status;
    }
    for (size_t k = 0; k < index->count; k++) {
        bool known = false;
        for (int i = 0; i < model->num_params; i++)
            known |= strcmp(model->params[i].name, index->entries[k].name) == 0;
        if (!known)
            return hpct_fail(HPCT_ERR_DATA, "%s: the model has no \"%.80s\"", path,
                             index->entries[k].name);
    }
    return HPCT_OK;
}

static hpct_status read_params(hpct_model *model, int fd, const char *path,
                               const hpct_st_index *index, off_t data_at, float **values)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        size_t bytes = param_bytes(&model->params[i]);
        values[i] = malloc(bytes);
        if (values[i] == NULL)
            return hpct_fail_memory(bytes);
        off_t at = data_at + (off_t) find(index, model->params[i].name)->begin;
        status = read_all(fd, values[i], bytes, at, path);
    }
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++)
        status = hpct_param_set(model, i, values[i]);
    return status;
}

hpct_status hpct_model_load_weights(hpct_model *model, const char *path)
{
    hpct_st_index index = {0};
    off_t data_at = 0;
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before weights are loaded",
                         model->name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be opened: %s", path, strerror(errno));
    size_t count = (size_t) model->num_params + 1;
    float **values = calloc(count, sizeof *values);
    hpct_status status = values != NULL ? HPCT_OK : hpct_fail_memory(count * sizeof *values);
    if (status == HPCT_OK)
        status = read_index(fd, path, &index, &data_at);
    if (status == HPCT_OK)
        status = check_index(model, &index, path);
    if (status == HPCT_OK)
        status = read_params(model, fd, path, &index, data_at, values);
    for (int i = 0; values != NULL && i < model->num_params; i++)
        free(values[i]);
    free(values);
    hpct_st_free(&index);
    close(fd);
    return status;
}
