/* CIFAR-10 and CIFAR-100, binary version (Krizhevsky): records of a label byte (CIFAR-100: coarse,
 * then fine label; the fine one is used) and 3072 bytes: the red, green and blue planes. */
#include "agent/data/cifar.h"

#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hpct_data_cifar_interleave(const uint8_t *planes, uint8_t *out)
{
    for (int i = 0; i < HPCT_DATA_CIFAR_PLANE; i++) {
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = planes[c * HPCT_DATA_CIFAR_PLANE + i];
    }
}

hpct_status hpct_data_cifar_make_room(hpct_dataset *dataset, size_t more)
{
    static const uint64_t shape[] = {32, 32, 3};
    size_t size = dataset->size + more;
    if (size > UINT32_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has too many pictures", dataset->path);
    uint8_t *pixels = realloc(dataset->pixels, size * HPCT_DATA_CIFAR_BYTES + 1);
    if (pixels == NULL)
        return hpct_fail_memory(size * HPCT_DATA_CIFAR_BYTES);
    dataset->pixels = pixels;
    int32_t *labels = realloc(dataset->labels, (size + 1) * sizeof *labels);
    if (labels == NULL)
        return hpct_fail_memory(size * sizeof *labels);
    dataset->labels = labels;
    return hpct_dataset_set_shape(dataset, 3, shape, dataset->path);
}

/* ---- one file ---- */

hpct_status hpct_data_cifar_read_binary(hpct_dataset *dataset, FILE *file, int label_bytes,
                                        const char *path)
{
    uint8_t record[2 + HPCT_DATA_CIFAR_BYTES];
    size_t length = (size_t) label_bytes + HPCT_DATA_CIFAR_BYTES, got;
    int classes = label_bytes == 1 ? 10 : 100;
    while ((got = fread(record, 1, length, file)) == length) {
        int label = record[label_bytes - 1];
        if (label >= classes)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the label of picture %zu is %d, there are %d classes", path,
                             dataset->size, label, classes);
        if ((dataset->size & 1023) == 0) {
            hpct_status status = hpct_data_cifar_make_room(dataset, 1024);
            if (status != HPCT_OK)
                return status;
        }
        hpct_data_cifar_interleave(record + label_bytes,
                                   dataset->pixels + dataset->size * HPCT_DATA_CIFAR_BYTES);
        dataset->labels[dataset->size++] = label;
    }
    if (ferror(file) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: reading failed: %s", path, strerror(errno));
    if (got != 0)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: it is truncated: its last picture has %zu of %zu bytes", path, got,
                         length);
    return HPCT_OK;
}

static hpct_status add(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                       const char *path)
{
    if (num_bytes == 0) /* fmemopen rejects an empty buffer */
        return hpct_fail(HPCT_ERR_DATA, "%s: it is empty", path);
    FILE *file = fmemopen((void *) (uintptr_t) bytes, num_bytes, "rb");
    if (file == NULL)
        return hpct_fail_memory(0);
    hpct_status status = hpct_data_cifar_read_binary(dataset, file, kind == 100 ? 2 : 1, path);
    fclose(file);
    return status;
}

/* One name per line. */
static void add_names(hpct_dataset *dataset, const uint8_t *bytes, size_t num_bytes, int kind,
                      const char *path)
{
    const char *text = (const char *) bytes, *end = text + num_bytes;
    (void) path;
    dataset->classes = calloc((size_t) kind, sizeof *dataset->classes);
    while (dataset->classes != NULL && dataset->num_classes < kind && text < end) {
        const char *line_end = memchr(text, '\n', (size_t) (end - text));
        size_t length = (size_t) ((line_end != NULL ? line_end : end) - text);
        size_t shown = length > 0 && text[length - 1] == '\r' ? length - 1 : length;
        if (shown > 0) {
            char *name = strndup(text, shown);
            if (name == NULL)
                return;
            dataset->classes[dataset->num_classes++] = name;
        }
        text += length + 1;
    }
}

static const hpct_data_cifar_version binary = {
    .suffix = ".bin",
    .folder = {"cifar-10-batches-bin", "cifar-100-binary"},
    .names = {"batches.meta.txt", "fine_label_names.txt"},
    .add = add,
    .add_names = add_names,
};

static bool claims(const char *path, bool is_folder)
{
    return hpct_data_cifar_claims(&binary, path, is_folder);
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    return hpct_data_cifar_read(&binary, dataset, path, split);
}

const hpct_data_format hpct_data_format_cifar_binary = {
    .name = "CIFAR binary",
    .looks_like = "a folder with CIFAR-10's data_batch_1.bin to 5 and test_batch.bin, or "
                  "CIFAR-100's train.bin and test.bin, or their .tar.gz",
    .claims = claims,
    .read = read_split,
};
