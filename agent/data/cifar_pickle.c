/* CIFAR-10 and CIFAR-100, Python version: each file is one pickled dictionary; "data" is a uint8
 * array [n][3072] in three planes. */
#include "agent/data/cifar.h"
#include "agent/data/pickle.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static hpct_status add_batch(hpct_dataset *dataset, const hpct_data_pickle_value *data,
                             const hpct_data_pickle_value *labels, int kind, const char *path)
{
    if (data == NULL || data->kind != HPCT_DATA_PICKLE_ARRAY || data->integer != 1 ||
        data->rank != 2 || data->sizes[1] != HPCT_DATA_CIFAR_BYTES)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has no 'data' of uint8 and shape (n, 3072)", path);
    size_t count = (size_t) data->sizes[0];
    int64_t label;
    if (labels == NULL || hpct_data_pickle_integer(labels, count, &label))
        return hpct_fail(HPCT_ERR_DATA, "%s: it has no '%s', or not one for each picture", path,
                         kind == 100 ? "fine_labels" : "labels");
    hpct_status status = hpct_data_cifar_make_room(dataset, count);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        if (!hpct_data_pickle_integer(labels, i, &label))
            return hpct_fail(HPCT_ERR_DATA, "%s: it has %zu pictures, but only %zu labels", path,
                             count, i);
        if (label < 0 || label >= kind)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the label of picture %zu is %lld, there are %d classes", path, i,
                             (long long) label, kind);
        hpct_data_cifar_interleave(data->bytes + i * HPCT_DATA_CIFAR_BYTES,
                                   dataset->pixels + dataset->size * HPCT_DATA_CIFAR_BYTES);
        dataset->labels[dataset->size++] = (int32_t) label;
    }
    return status;
}

hpct_status hpct_data_cifar_read_pickle(hpct_dataset *dataset, const uint8_t *bytes,
                                        size_t num_bytes, int kind, const char *path)
{
    hpct_data_pickle *pickle = NULL;
    const hpct_data_pickle_value *value;
    hpct_status status = hpct_data_pickle_read(&pickle, &value, bytes, num_bytes, path);
    if (status == HPCT_OK)
        status = add_batch(dataset, hpct_data_pickle_get(value, "data"),
                           hpct_data_pickle_get(value, kind == 100 ? "fine_labels" : "labels"),
                           kind, path);
    hpct_data_pickle_free(pickle);
    return status;
}

/* Class names are not needed for training, so errors are ignored. */
static void take_names(hpct_dataset *dataset, const hpct_data_pickle_value *list)
{
    if (list == NULL || list->kind != HPCT_DATA_PICKLE_SEQUENCE || list->count > 100)
        return;
    dataset->classes = calloc(list->count + 1, sizeof *dataset->classes);
    for (size_t i = 0; dataset->classes != NULL && i < list->count; i++) {
        const hpct_data_pickle_value *name = list->items[i];
        char *copy = name->kind == HPCT_DATA_PICKLE_BYTES
                         ? strndup((const char *) name->bytes, name->count)
                         : NULL;
        if (copy == NULL)
            return;
        dataset->classes[dataset->num_classes++] = copy;
    }
}

static void add_names(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                      const char *path)
{
    hpct_data_pickle *pickle = NULL;
    const hpct_data_pickle_value *value;
    if (hpct_data_pickle_read(&pickle, &value, bytes, num_bytes, path) == HPCT_OK)
        take_names(dataset,
                   hpct_data_pickle_get(value, kind == 100 ? "fine_label_names" : "label_names"));
    hpct_data_pickle_free(pickle);
}

static const hpct_data_cifar_version python = {
    .suffix = "",
    .folder = {"cifar-10-batches-py", "cifar-100-python"},
    .names = {"batches.meta", "meta"},
    .add = hpct_data_cifar_read_pickle,
    .add_names = add_names,
};

static bool claims(const char *path, bool is_folder)
{
    return hpct_data_cifar_claims(&python, path, is_folder);
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    return hpct_data_cifar_read(&python, dataset, path, split);
}

const hpct_data_format hpct_data_format_cifar_pickle = {
    .name = "CIFAR pickle",
    .looks_like = "a folder with CIFAR-10's data_batch_1 to 5 and test_batch, or CIFAR-100's train "
                  "and test (Python version), or their .tar.gz",
    .claims = claims,
    .read = read_split,
};
