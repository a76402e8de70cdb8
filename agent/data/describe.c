/* What a split holds, for people. */
#include "agent/data/dataset.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void print_bytes(FILE *stream, size_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double) bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    fprintf(stream, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void print_storage(const hpct_dataset *dataset, FILE *stream)
{
    bool decoded = dataset->pixels != NULL;
    size_t bytes = decoded ? dataset->size * dataset->stored_elements : dataset->encoded.num_bytes;
    fputs("  in memory: ", stream);
    print_bytes(stream, bytes);
    fputs(decoded                          ? " of pixels\n"
          : dataset->encoded.bytes != NULL ? " of JPEG and PNG, decoded for each step\n"
                                           : " in files, read and decoded for each step\n",
          stream);
}

/* More cannot be classes: they are labels of another kind. */
#define MAX_LISTED 100000

/* A file's name must not drive a terminal. */
static void print_name(FILE *stream, const char *name)
{
    for (; *name != '\0'; name++)
        fputc((unsigned char) *name < 0x20 || *name == 0x7f ? '?' : *name, stream);
}

static hpct_status print_classes(const hpct_dataset *dataset, FILE *stream)
{
    int classes = hpct_dataset_num_classes(dataset);
    if (classes > MAX_LISTED) {
        fprintf(stream, "  labels:    0 to %d\n", dataset->max_label);
        return HPCT_OK;
    }
    size_t *counts = calloc((size_t) classes, sizeof *counts);
    if (counts == NULL)
        return hpct_fail_memory((size_t) classes * sizeof *counts);
    for (size_t i = 0; i < dataset->size; i++)
        counts[dataset->labels[i]]++;
    fprintf(stream, "  classes:   %d\n", classes);
    for (int c = 0; c < classes; c++) {
        fprintf(stream, "%7d  ", c);
        if (c < dataset->num_classes) {
            print_name(stream, dataset->classes[c]);
            fputs("  ", stream);
        }
        fprintf(stream, "%zu\n", counts[c]);
    }
    free(counts);
    return HPCT_OK;
}

hpct_status hpct_dataset_summary(const hpct_dataset *dataset, FILE *stream)
{
    char shape[64] = "of several sizes";
    if (dataset->stored.rank != 0)
        hpct_shape_text(shape, sizeof shape, dataset->stored);
    fprintf(stream, "  samples:   %zu\n  shape:     %s\n", dataset->size, shape);
    print_storage(dataset, stream);
    hpct_status status = print_classes(dataset, stream);
    if (status == HPCT_OK && ferror(stream) != 0)
        status = hpct_fail(HPCT_ERR_IO, "writing failed: %s", strerror(errno));
    return status;
}
