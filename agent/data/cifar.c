/* CIFAR-10 and CIFAR-100, binary version (Krizhevsky): records of a label byte (CIFAR-100: coarse,
 * then fine, which is taken) and 3072 bytes, the red plane, the green, the blue. */
#include "agent/data/cifar.h"

#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_CLASSES 100

void hpct_cifar_interleave(const uint8_t *planes, uint8_t *out)
{
    for (int i = 0; i < HPCT_CIFAR_PLANE; i++) {
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = planes[c * HPCT_CIFAR_PLANE + i];
    }
}

hpct_status hpct_cifar_make_room(hpct_dataset *dataset, size_t more)
{
    static const uint64_t shape[] = {32, 32, 3};
    size_t size = dataset->size + more;
    if (size > UINT32_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has too many pictures", dataset->path);
    uint8_t *pixels = realloc(dataset->pixels, size * HPCT_CIFAR_BYTES + 1);
    if (pixels == NULL)
        return hpct_fail_memory(size * HPCT_CIFAR_BYTES);
    dataset->pixels = pixels;
    int32_t *labels = realloc(dataset->labels, (size + 1) * sizeof *labels);
    if (labels == NULL)
        return hpct_fail_memory(size * sizeof *labels);
    dataset->labels = labels;
    return hpct_dataset_set_shape(dataset, 3, shape, dataset->path);
}

/* ---- one file ---- */

hpct_status hpct_cifar_read_binary(hpct_dataset *dataset, FILE *file, int label_bytes,
                                   const char *path)
{
    uint8_t record[2 + HPCT_CIFAR_BYTES];
    size_t length = (size_t) label_bytes + HPCT_CIFAR_BYTES, got;
    int classes = label_bytes == 1 ? 10 : 100;
    while ((got = fread(record, 1, length, file)) == length) {
        int label = record[label_bytes - 1];
        if (label >= classes)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the label of picture %zu is %d, there are %d classes", path,
                             dataset->size, label, classes);
        if ((dataset->size & 1023) == 0) {
            hpct_status status = hpct_cifar_make_room(dataset, 1024);
            if (status != HPCT_OK)
                return status;
        }
        hpct_cifar_interleave(record + label_bytes,
                              dataset->pixels + dataset->size * HPCT_CIFAR_BYTES);
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

/* Lines of FOLDER/NAME, where it is there. */
static hpct_status read_names(hpct_dataset *dataset, const char *folder, const char *name)
{
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return HPCT_OK;
    dataset->classes = calloc(MAX_CLASSES, sizeof *dataset->classes);
    while (dataset->classes != NULL && dataset->num_classes < MAX_CLASSES &&
           fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0')
            continue;
        dataset->classes[dataset->num_classes] = strdup(line);
        if (dataset->classes[dataset->num_classes] == NULL)
            break;
        dataset->num_classes++;
    }
    fclose(file);
    return HPCT_OK;
}

/* ---- the folder ---- */

static bool is_there(const char *folder, const char *name)
{
    char path[4096];
    struct stat info;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int) sizeof path &&
           stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

int hpct_cifar_kind(const char *folder, const char *suffix)
{
    char name[32];
    snprintf(name, sizeof name, "data_batch_1%s", suffix);
    bool ten = is_there(folder, name);
    snprintf(name, sizeof name, "test_batch%s", suffix);
    if (ten || is_there(folder, name))
        return 10;
    snprintf(name, sizeof name, "train%s", suffix);
    bool hundred = is_there(folder, name);
    snprintf(name, sizeof name, "test%s", suffix);
    return hundred && is_there(folder, name) ? 100 : 0;
}

hpct_status hpct_cifar_each_file(hpct_dataset *dataset, const char *folder, const char *suffix,
                                 hpct_split split, hpct_cifar_file *read)
{
    static const char *const ten[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                      "data_batch_4", "data_batch_5"};
    static const char *const test[] = {"test_batch"}, *const hundred[][1] = {{"train"}, {"test"}};
    int kind = hpct_cifar_kind(folder, suffix);
    const char *const *names = kind == 100           ? hundred[split == HPCT_TEST]
                               : split == HPCT_TRAIN ? ten
                                                     : test;
    int count = kind == 10 && split == HPCT_TRAIN ? 5 : 1;
    hpct_status status = HPCT_OK;
    dataset->path = strdup(folder);
    if (dataset->path == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s%s", folder, names[i], suffix);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
        status = read(dataset, file, kind, path);
        fclose(file);
    }
    return status;
}

static bool claims(const char *path, bool is_folder)
{
    return is_folder && hpct_cifar_kind(path, ".bin") != 0;
}

static hpct_status read_one(hpct_dataset *dataset, FILE *file, int kind, const char *path)
{
    return hpct_cifar_read_binary(dataset, file, kind == 100 ? 2 : 1, path);
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_status status = hpct_cifar_each_file(dataset, path, ".bin", split, read_one);
    if (status == HPCT_OK)
        status = read_names(dataset, path,
                            hpct_cifar_kind(path, ".bin") == 10 ? "batches.meta.txt"
                                                                : "fine_label_names.txt");
    return status;
}

const hpct_format hpct_format_cifar_binary = {
    .name = "CIFAR binary",
    .looks_like =
        "a folder with CIFAR-10's data_batch_1.bin to 5 and test_batch.bin, or CIFAR-100's "
        "train.bin and test.bin",
    .claims = claims,
    .read = read_split,
};
