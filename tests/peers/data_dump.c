/* Writes a split as a model would get it: data_dump PATH train|test HEIGHT WIDTH CHANNELS [SHARE],
 * 0 0 for the stored size; with a share what --validation-split leaves of the training split
 * (train) or holds out of it (test). On stdout: a line "samples height width channels", the labels
 * (int32), the samples (float32). */
#include "agent/data/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 7

static uint32_t indices[BATCH];
static size_t size;

static hpct_data_batch in_order(void *from, int64_t number)
{
    (void) from;
    size_t first = (size_t) number * BATCH;
    int count = size - first < BATCH ? (int) (size - first) : BATCH;
    for (int i = 0; i < count; i++)
        indices[i] = (uint32_t) (first + (size_t) i);
    return (hpct_data_batch){.indices = indices, .count = count, .global_count = count};
}

int main(int argc, char **argv)
{
    hpct_dataset *dataset = NULL, *held = NULL;
    hpct_data_pipeline *pipeline = NULL;
    if (argc != 6 && argc != 7)
        return 64;
    hpct_dataset_options options = {.height = atoi(argv[3]),
                                    .width = atoi(argv[4]),
                                    .channels = atoi(argv[5]),
                                    .scaling = HPCT_SCALE_NONE};
    bool train = strcmp(argv[2], "train") == 0;
    hpct_status status = hpct_dataset_open_as(
        &dataset, argv[1], train || argc == 7 ? HPCT_TRAIN : HPCT_TEST, &options);
    if (status == HPCT_OK && argc == 7)
        status = hpct_dataset_hold_out(dataset, atof(argv[6]), &held);
    if (status == HPCT_OK && argc == 7 && !train) {
        hpct_dataset_free(dataset);
        dataset = held;
        held = NULL;
    }
    if (status == HPCT_OK) {
        size = dataset->size;
        hpct_data_pipeline_options batches = {.way = hpct_data_input_from_host(dataset, false),
                                              .dataset = dataset,
                                              .batches = (int64_t) (size + BATCH - 1) / BATCH,
                                              .largest = BATCH,
                                              .threads = 2,
                                              .batch = in_order};
        status = hpct_data_pipeline_open(&pipeline, &batches);
    }
    if (status == HPCT_OK) {
        const hpct_shape *shape = &dataset->shape;
        printf("%zu %d %d %d\n", size, shape->size[0], shape->size[1],
               shape->rank > 2 ? shape->size[2] : 1);
        fwrite(dataset->labels, sizeof *dataset->labels, size, stdout);
    }
    for (size_t done = 0; status == HPCT_OK && done < size; done += BATCH) {
        hpct_data_input input;
        status = hpct_data_pipeline_next(pipeline, &input);
        if (status == HPCT_OK)
            fwrite(input.pixels, sizeof(float) * dataset->elements, (size_t) input.count, stdout);
    }
    hpct_data_pipeline_close(pipeline);
    hpct_dataset_free(dataset);
    hpct_dataset_free(held);
    if (status != HPCT_OK)
        fprintf(stderr, "data_dump: %s\n", hpct_last_error());
    return (int) status;
}
