/* Synthetic pictures: half a pattern of the class, half noise. */
#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static const hpct_data_format synthetic = {.name = "synthetic"};

/* Byte `index` of stream `stream`. */
static unsigned byte_of(uint64_t stream, size_t index)
{
    return (unsigned) (hpct_data_mix(stream * 0x9e3779b97f4a7c15u + index / 8) >>
                       (8 * (index % 8))) &
           255;
}

static hpct_status fill(hpct_dataset *dataset, int classes, hpct_split split)
{
    size_t elements = dataset->stored_elements;
    uint8_t *patterns = malloc((size_t) classes * elements);
    dataset->pixels = malloc(dataset->size * elements);
    dataset->labels = malloc(dataset->size * sizeof *dataset->labels);
    dataset->path = strdup("synthetic");
    if (patterns == NULL || dataset->pixels == NULL || dataset->labels == NULL ||
        dataset->path == NULL) {
        free(patterns);
        return hpct_fail_memory(dataset->size * elements);
    }
    for (size_t c = 0; c < (size_t) classes; c++) {
        for (size_t j = 0; j < elements; j++)
            patterns[c * elements + j] = (uint8_t) (byte_of(c, j) / 2);
    }
    uint64_t noise = split == HPCT_TRAIN ? 1u << 20 : (uint64_t) 1 << 40;
#pragma omp parallel for
    for (size_t i = 0; i < dataset->size; i++) {
        size_t label = i % (size_t) classes;
        uint8_t *dst = dataset->pixels + i * elements;
        for (size_t j = 0; j < elements; j++)
            dst[j] = (uint8_t) (patterns[label * elements + j] + byte_of(noise + i, j) / 2);
        dataset->labels[i] = (int32_t) label;
    }
    free(patterns);
    return HPCT_OK;
}

hpct_status hpct_dataset_synthetic(hpct_dataset **out, hpct_shape shape, int classes,
                                   size_t samples, hpct_split split,
                                   const hpct_dataset_options *options)
{
    uint64_t sizes[HPCT_MAX_RANK] = {0}, bytes;
    if (classes < 1 || samples < 1)
        return hpct_fail(HPCT_ERR_USAGE, "synthetic data needs at least one class and one sample");
    if (options != NULL)
        HPCT_TRY(hpct_data_augment_check(options));
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return hpct_fail_memory(sizeof *dataset);
    dataset->format = &synthetic;
    if (options != NULL)
        dataset->options = *options;
    for (int i = 0; i < shape.rank && i < HPCT_MAX_RANK; i++)
        sizes[i] = (uint64_t) shape.size[i];
    dataset->size = samples;
    hpct_status status = hpct_dataset_set_shape(dataset, shape.rank, sizes, "synthetic");
    if (status == HPCT_OK && (__builtin_mul_overflow((uint64_t) samples + (uint64_t) classes,
                                                     dataset->stored_elements, &bytes) ||
                              bytes > hpct_dataset_memory(dataset)))
        status = hpct_fail(HPCT_ERR_CONFIG, "%zu synthetic samples do not fit the memory", samples);
    if (status == HPCT_OK)
        status = fill(dataset, classes, split);
    if (status == HPCT_OK)
        status = hpct_dataset_finish(dataset);
    if (status == HPCT_OK)
        *out = dataset;
    else
        hpct_dataset_free(dataset);
    return status;
}
