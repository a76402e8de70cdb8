/* Data sets in memory: opened by whichever format claims the path, gathered batch by batch. */
#include "agent/data/dataset.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SAMPLE_ELEMENTS ((uint64_t) 1 << 26)

static const hpct_format *const formats[] = {&hpct_format_idx, &hpct_format_npz};
#define NUM_FORMATS (sizeof formats / sizeof formats[0])

static hpct_status finish_reading(hpct_dataset *dataset)
{
    if (dataset->size == 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: there are no samples in it", dataset->path);
    if (dataset->size > UINT32_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%s: %zu samples are more than can be indexed",
                         dataset->path, dataset->size);
    for (size_t i = 0; i < dataset->size; i++) {
        if (dataset->labels[i] > dataset->max_label)
            dataset->max_label = dataset->labels[i];
    }
    return HPCT_OK;
}

hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split)
{
    struct stat info;
    const hpct_format *format = NULL;
    if (stat(path, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < NUM_FORMATS && format == NULL; i++) {
        if (formats[i]->claims(path, S_ISDIR(info.st_mode)))
            format = formats[i];
    }
    if (format == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: no data set is there that can be read: %s, or %s",
                         path, formats[0]->looks_like, formats[1]->looks_like);
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return hpct_fail_memory(sizeof *dataset);
    hpct_status status = format->read(dataset, path, split);
    if (status == HPCT_OK)
        status = finish_reading(dataset);
    if (status != HPCT_OK) {
        hpct_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return HPCT_OK;
}

void hpct_dataset_free(hpct_dataset *dataset)
{
    if (dataset == NULL)
        return;
    free(dataset->pixels);
    free(dataset->labels);
    free(dataset->path);
    free(dataset);
}

hpct_status hpct_dataset_set_shape(hpct_dataset *dataset, int rank, const uint64_t *sizes,
                                   const char *file)
{
    uint64_t elements = 1;
    if (rank < 1 || rank > HPCT_MAX_RANK)
        return hpct_fail(HPCT_ERR_DATA, "%s: one sample has %d dimensions, 1 to %d are possible",
                         file, rank, HPCT_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (sizes[i] == 0 || sizes[i] > MAX_SAMPLE_ELEMENTS / elements)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: a sample's dimension of %" PRIu64 " cannot be right", file,
                             sizes[i]);
        elements *= sizes[i];
        dataset->shape.size[i] = (int) sizes[i];
    }
    dataset->shape.rank = rank;
    dataset->elements = (size_t) elements;
    return HPCT_OK;
}

void hpct_dataset_gather(const hpct_dataset *dataset, const uint32_t *indices, int count,
                         float *pixels, int32_t *labels)
{
    size_t elements = dataset->elements;
    for (int i = 0; i < count; i++) {
        const uint8_t *src = dataset->pixels + (size_t) indices[i] * elements;
        float *dst = pixels + (size_t) i * elements;
#pragma omp simd
        for (size_t j = 0; j < elements; j++)
            dst[j] = (float) src[j] * (1.0f / 255.0f);
        labels[i] = dataset->labels[indices[i]];
    }
}

/* "28x28x1" */
static const char *shape_text(char *text, size_t size, hpct_shape shape)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < shape.rank && length < size; i++)
        length +=
            (size_t) snprintf(text + length, size - length, i > 0 ? "x%d" : "%d", shape.size[i]);
    return text;
}

static hpct_shape without_ones(hpct_shape shape)
{
    hpct_shape out = {0};
    for (int i = 0; i < shape.rank; i++) {
        if (shape.size[i] != 1)
            out.size[out.rank++] = shape.size[i];
    }
    return out;
}

hpct_status hpct_dataset_check(const hpct_dataset *dataset, hpct_shape input, int outputs)
{
    char have[64], want[64];
    hpct_shape a = without_ones(dataset->shape), b = without_ones(input);
    if (a.rank != b.rank || memcmp(a.size, b.size, sizeof a.size) != 0)
        return hpct_fail(HPCT_ERR_DATA, "%s: samples are %s, the model's input is %s",
                         dataset->path, shape_text(have, sizeof have, dataset->shape),
                         shape_text(want, sizeof want, input));
    for (size_t i = 0; dataset->max_label >= outputs && i < dataset->size; i++) {
        if (dataset->labels[i] >= outputs)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: label %d of sample %zu is out of range: the model has %d classes "
                             "(0 to %d)",
                             dataset->path, (int) dataset->labels[i], i, outputs, outputs - 1);
    }
    return HPCT_OK;
}

size_t hpct_dataset_size(const hpct_dataset *dataset)
{
    return dataset->size;
}

hpct_shape hpct_dataset_shape(const hpct_dataset *dataset)
{
    return dataset->shape;
}

int hpct_dataset_max_label(const hpct_dataset *dataset)
{
    return dataset->max_label;
}
