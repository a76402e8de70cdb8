/* Batches of a data set for a model, from the host or from device memory. */
#include "agent/train/batch_source.h"

#include "agent/data/augment.h"
#include "base/status.h"
#include "nn/run/resident.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

struct hpct_train_batch_source {
    hpct_model *model;
    hpct_data_pipeline *pipeline;
    hpct_data_input_way way;
    hpct_run_resident *resident; /* DEVICE: the images in device memory, */
    hpct_drawn *drawn;           /* a batch's samples, */
    size_t first;                /* and the index of its first sample in the data set */
    const hpct_dataset *dataset;
    float *targets; /* of a batch; NULL: the data set has labels */
};

static void *take_for(const void *model, size_t bytes)
{
    return hpct_model_take_host(model, bytes);
}

static void give_back_for(const void *model, void *memory)
{
    hpct_model_return_host(model, memory);
}

/* Tries to copy images to the device: they must be bytes of one shape in host memory. */
static hpct_status try_device(hpct_train_batch_source *input_source,
                              const hpct_data_pipeline_options *options, size_t count)
{
    const hpct_dataset *dataset = options->dataset;
    const hpct_shape *stored = &dataset->stored, *shape = &dataset->shape;
    hpct_backend_pictures pictures = {
        .count = count,
        .labels = dataset->labels + input_source->first,
        .height = 1,
        .width = (int) dataset->stored_elements,
        .channels = 1,
        .to_height = 1,
        .to_width = (int) dataset->stored_elements,
    };
    bool deep = options->training && hpct_data_augment_is_deep(&dataset->options);
    if (dataset->pixels == NULL || count == 0 || deep) /* a device only flips and crops */
        return HPCT_OK;
    pictures.pixels = dataset->pixels + input_source->first * dataset->stored_elements;
    if (!hpct_dataset_is_plain(dataset, options->training)) { /* as images */
        pictures.height = stored->size[0];
        pictures.width = stored->rank > 1 ? stored->size[1] : 1;
        pictures.channels = stored->rank > 2 ? stored->size[2] : 1;
        pictures.to_height = shape->size[0];
        pictures.to_width = shape->rank > 1 ? shape->size[1] : 1;
    }
    hpct_dataset_scale(dataset, &pictures.factor, &pictures.offset);
    HPCT_TRY(hpct_run_resident_open(&input_source->resident, input_source->model, &pictures));
    if (input_source->resident == NULL)
        return HPCT_OK;
    size_t bytes = ((size_t) options->largest + 1) * sizeof *input_source->drawn;
    input_source->drawn = hpct_model_take_host(input_source->model, bytes);
    return input_source->drawn != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

/* The only place that decides how images are provided. */
static hpct_status choose_way(hpct_train_batch_source *input_source,
                              const hpct_data_pipeline_options *options, size_t count)
{
    HPCT_TRY(try_device(input_source, options, count));
    input_source->way = input_source->resident != NULL
                            ? HPCT_DATA_INPUT_DEVICE
                            : hpct_data_input_from_host(options->dataset, options->training);
    return HPCT_OK;
}

static hpct_status open_pipeline(hpct_train_batch_source *input_source,
                                 const hpct_data_pipeline_options *options)
{
    hpct_data_pipeline_options own = *options;
    own.way = input_source->way;
    own.memory = (hpct_data_pipeline_memory){
        .take = take_for, .give_back = give_back_for, .owner = input_source->model};
    own.drawn = input_source->drawn;
    if (input_source->way == HPCT_DATA_INPUT_DIRECT) {
        own.pixels = hpct_model_input(input_source->model);
        own.labels = hpct_model_labels(input_source->model);
    }
    return hpct_data_pipeline_open(&input_source->pipeline, &own);
}

static hpct_status take_targets(hpct_train_batch_source *input_source,
                                const hpct_data_pipeline_options *options)
{
    size_t bytes = ((size_t) options->largest + 1) * (size_t) options->dataset->num_targets *
                   sizeof *input_source->targets;
    if (options->dataset->targets == NULL)
        return HPCT_OK;
    input_source->targets = hpct_model_take_host(input_source->model, bytes);
    return input_source->targets != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

hpct_status hpct_train_batch_source_open(hpct_train_batch_source **out, hpct_model *model,
                                         const hpct_data_pipeline_options *options, size_t first,
                                         size_t count)
{
    hpct_train_batch_source *input_source = calloc(1, sizeof *input_source);
    if (input_source == NULL)
        return hpct_fail_memory(sizeof *input_source);
    input_source->model = model;
    input_source->first = first;
    input_source->dataset = options->dataset;
    hpct_status status = choose_way(input_source, options, count);
    if (status == HPCT_OK)
        status = take_targets(input_source, options);
    if (status == HPCT_OK)
        status = open_pipeline(input_source, options);
    if (status == HPCT_OK)
        *out = input_source;
    else
        hpct_train_batch_source_close(input_source);
    return status;
}

static void copy_targets(const hpct_train_batch_source *input_source, int at, uint32_t sample)
{
    size_t each = (size_t) input_source->dataset->num_targets;
    memcpy(input_source->targets + (size_t) at * each,
           input_source->dataset->targets + sample * each, each * sizeof *input_source->targets);
}

hpct_status hpct_train_batch_source_next(hpct_train_batch_source *input_source,
                                         hpct_data_input *out)
{
    HPCT_TRY(hpct_model_await_input(input_source->model));
    HPCT_TRY(hpct_data_pipeline_next(input_source->pipeline, out));
    bool on_device = input_source->way == HPCT_DATA_INPUT_DEVICE;
    for (int i = 0; input_source->targets != NULL && i < out->count; i++)
        copy_targets(input_source, i,
                     out->indices != NULL ? out->indices[i] : input_source->drawn[i].index);
    for (int i = 0; on_device && i < out->count; i++)
        input_source->drawn[i].index -= (uint32_t) input_source->first;
    if (on_device)
        hpct_model_set_resident_input(input_source->model, input_source->resident,
                                      input_source->drawn);
    else
        hpct_model_set_input(input_source->model, out->pixels, out->labels);
    if (input_source->targets == NULL)
        return hpct_model_mix_labels(input_source->model, out->count,
                                     on_device ? NULL : out->others,
                                     on_device ? NULL : out->shares);
    hpct_model_set_targets(input_source->model, input_source->targets);
    return HPCT_OK;
}

double hpct_train_batch_source_waited(const hpct_train_batch_source *input_source)
{
    return hpct_data_pipeline_waited(input_source->pipeline);
}

void hpct_train_batch_source_close(hpct_train_batch_source *input_source)
{
    if (input_source == NULL)
        return;
    char *told = hpct_error_keep();
    hpct_model_wait(input_source->model);                  /* it may still read the input */
    hpct_model_set_input(input_source->model, NULL, NULL); /* whose memory is freed next */
    hpct_data_pipeline_close(input_source->pipeline);
    hpct_model_return_host(input_source->model, input_source->drawn);
    hpct_model_return_host(input_source->model, input_source->targets);
    hpct_run_resident_close(input_source->resident);
    hpct_error_restore(told); /* later errors are consequences */
    free(input_source);
}
