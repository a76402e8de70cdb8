/* CIFAR-10 and CIFAR-100, Python version: each file one pickled dictionary, "data" being an array
 * of uint8 [n][3072] in three planes. */
#include "agent/data/cifar.h"
#include "agent/data/pickle.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE_BYTES ((size_t) 1 << 30)

static hpct_status add_batch(hpct_dataset *dataset, const hpct_pickle_value *data,
                             const hpct_pickle_value *labels, int kind, const char *path)
{
    if (data == NULL || data->kind != HPCT_PICKLE_ARRAY || data->integer != 1 || data->rank != 2 ||
        data->sizes[1] != HPCT_CIFAR_BYTES)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has no 'data' of uint8 and shape (n, 3072)", path);
    size_t count = (size_t) data->sizes[0];
    int64_t label;
    if (labels == NULL || hpct_pickle_integer(labels, count, &label))
        return hpct_fail(HPCT_ERR_DATA, "%s: it has no '%s', or not one for each picture", path,
                         kind == 100 ? "fine_labels" : "labels");
    hpct_status status = hpct_cifar_make_room(dataset, count);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        if (!hpct_pickle_integer(labels, i, &label))
            return hpct_fail(HPCT_ERR_DATA, "%s: it has %zu pictures, but only %zu labels", path,
                             count, i);
        if (label < 0 || label >= kind)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the label of picture %zu is %lld, there are %d classes", path, i,
                             (long long) label, kind);
        hpct_cifar_interleave(data->bytes + i * HPCT_CIFAR_BYTES,
                              dataset->pixels + dataset->size * HPCT_CIFAR_BYTES);
        dataset->labels[dataset->size++] = (int32_t) label;
    }
    return status;
}

hpct_status hpct_cifar_read_pickle(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes,
                                   int kind, const char *path)
{
    hpct_pickle *pickle = NULL;
    const hpct_pickle_value *value;
    hpct_status status = hpct_pickle_read(&pickle, &value, bytes, num_bytes, path);
    if (status == HPCT_OK)
        status =
            add_batch(dataset, hpct_pickle_get(value, "data"),
                      hpct_pickle_get(value, kind == 100 ? "fine_labels" : "labels"), kind, path);
    hpct_pickle_free(pickle);
    return status;
}

static hpct_status read_whole(FILE *file, uint8_t **bytes, size_t *num_bytes, const char *path)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || info.st_size < 0 ||
        (size_t) info.st_size > MAX_FILE_BYTES)
        return hpct_fail(HPCT_ERR_DATA, "%s: no batch of CIFAR is so large", path);
    *num_bytes = (size_t) info.st_size;
    *bytes = malloc(*num_bytes + 1);
    if (*bytes == NULL)
        return hpct_fail_memory(*num_bytes);
    if (fread(*bytes, 1, *num_bytes, file) == *num_bytes)
        return HPCT_OK;
    free(*bytes);
    *bytes = NULL;
    return hpct_fail(HPCT_ERR_IO, "%s: reading failed: %s", path, strerror(errno));
}

static hpct_status read_one(hpct_dataset *dataset, FILE *file, int kind, const char *path)
{
    uint8_t *bytes;
    size_t num_bytes;
    hpct_status status = read_whole(file, &bytes, &num_bytes, path);
    if (status != HPCT_OK)
        return status;
    status = hpct_cifar_read_pickle(dataset, bytes, num_bytes, kind, path);
    free(bytes);
    return status;
}

/* The names of the classes are of no use to training: without them nothing fails. */
static void take_names(hpct_dataset *dataset, const hpct_pickle_value *list)
{
    if (list == NULL || list->kind != HPCT_PICKLE_SEQUENCE || list->count > 100)
        return;
    dataset->classes = calloc(list->count + 1, sizeof *dataset->classes);
    for (size_t i = 0; dataset->classes != NULL && i < list->count; i++) {
        const hpct_pickle_value *name = list->items[i];
        char *copy = name->kind == HPCT_PICKLE_BYTES
                         ? strndup((const char *) name->bytes, name->count)
                         : NULL;
        if (copy == NULL)
            return;
        dataset->classes[dataset->num_classes++] = copy;
    }
}

static void read_names(hpct_dataset *dataset, const char *folder, int kind)
{
    char path[4096];
    uint8_t *bytes = NULL;
    size_t num_bytes;
    hpct_pickle *pickle = NULL;
    const hpct_pickle_value *value;
    snprintf(path, sizeof path, "%s/%s", folder, kind == 100 ? "meta" : "batches.meta");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (read_whole(file, &bytes, &num_bytes, path) == HPCT_OK &&
        hpct_pickle_read(&pickle, &value, bytes, num_bytes, path) == HPCT_OK)
        take_names(dataset,
                   hpct_pickle_get(value, kind == 100 ? "fine_label_names" : "label_names"));
    hpct_pickle_free(pickle);
    free(bytes);
    fclose(file);
}

static bool claims(const char *path, bool is_folder)
{
    return is_folder && hpct_cifar_kind(path, "") != 0;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_status status = hpct_cifar_each_file(dataset, path, "", split, read_one);
    if (status == HPCT_OK)
        read_names(dataset, path, hpct_cifar_kind(path, ""));
    return status;
}

const hpct_format hpct_format_cifar_pickle = {
    .name = "CIFAR pickle",
    .looks_like = "a folder with CIFAR-10's data_batch_1 to 5 and test_batch, or CIFAR-100's train "
                  "and test (Python version)",
    .claims = claims,
    .read = read_split,
};
