/* Batches of a data set for a model, from the host or from device memory. */
#include "agent/train/feed.h"

#include "agent/data/augment.h"
#include "base/status.h"
#include "nn/run/resident.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

struct hpct_feed {
    hpct_model *model;
    hpct_pipeline *pipeline;
    hpct_input_way way;
    hpct_resident *resident; /* DEVICE: the images in device memory, */
    hpct_drawn *drawn;       /* a batch's samples, */
    size_t first;            /* and the index of its first sample in the data set */
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
static hpct_status try_device(hpct_feed *feed, const hpct_pipeline_options *options, size_t count)
{
    const hpct_dataset *dataset = options->dataset;
    const hpct_shape *stored = &dataset->stored, *shape = &dataset->shape;
    hpct_pictures pictures = {
        .count = count,
        .labels = dataset->labels + feed->first,
        .height = 1,
        .width = (int) dataset->stored_elements,
        .channels = 1,
        .to_height = 1,
        .to_width = (int) dataset->stored_elements,
    };
    bool deep = options->training && hpct_augment_is_deep(&dataset->options);
    if (dataset->pixels == NULL || count == 0 || deep) /* a device only flips and crops */
        return HPCT_OK;
    pictures.pixels = dataset->pixels + feed->first * dataset->stored_elements;
    if (!hpct_dataset_is_plain(dataset, options->training)) { /* as images */
        pictures.height = stored->size[0];
        pictures.width = stored->rank > 1 ? stored->size[1] : 1;
        pictures.channels = stored->rank > 2 ? stored->size[2] : 1;
        pictures.to_height = shape->size[0];
        pictures.to_width = shape->rank > 1 ? shape->size[1] : 1;
    }
    hpct_dataset_scale(dataset, &pictures.factor, &pictures.offset);
    HPCT_TRY(hpct_resident_open(&feed->resident, feed->model, &pictures));
    if (feed->resident == NULL)
        return HPCT_OK;
    size_t bytes = ((size_t) options->largest + 1) * sizeof *feed->drawn;
    feed->drawn = hpct_model_take_host(feed->model, bytes);
    return feed->drawn != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

/* The only place that decides how images are provided. */
static hpct_status choose_way(hpct_feed *feed, const hpct_pipeline_options *options, size_t count)
{
    HPCT_TRY(try_device(feed, options, count));
    feed->way = feed->resident != NULL ? HPCT_INPUT_DEVICE
                                       : hpct_input_from_host(options->dataset, options->training);
    return HPCT_OK;
}

static hpct_status open_pipeline(hpct_feed *feed, const hpct_pipeline_options *options)
{
    hpct_pipeline_options own = *options;
    own.way = feed->way;
    own.memory =
        (hpct_pipeline_memory){.take = take_for, .give_back = give_back_for, .owner = feed->model};
    own.drawn = feed->drawn;
    if (feed->way == HPCT_INPUT_DIRECT) {
        own.pixels = hpct_model_input(feed->model);
        own.labels = hpct_model_labels(feed->model);
    }
    return hpct_pipeline_open(&feed->pipeline, &own);
}

static hpct_status take_targets(hpct_feed *feed, const hpct_pipeline_options *options)
{
    size_t bytes = ((size_t) options->largest + 1) * (size_t) options->dataset->num_targets *
                   sizeof *feed->targets;
    if (options->dataset->targets == NULL)
        return HPCT_OK;
    feed->targets = hpct_model_take_host(feed->model, bytes);
    return feed->targets != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

hpct_status hpct_feed_open(hpct_feed **out, hpct_model *model, const hpct_pipeline_options *options,
                           size_t first, size_t count)
{
    hpct_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL)
        return hpct_fail_memory(sizeof *feed);
    feed->model = model;
    feed->first = first;
    feed->dataset = options->dataset;
    hpct_status status = choose_way(feed, options, count);
    if (status == HPCT_OK)
        status = take_targets(feed, options);
    if (status == HPCT_OK)
        status = open_pipeline(feed, options);
    if (status == HPCT_OK)
        *out = feed;
    else
        hpct_feed_close(feed);
    return status;
}

static void copy_targets(const hpct_feed *feed, int at, uint32_t sample)
{
    size_t each = (size_t) feed->dataset->num_targets;
    memcpy(feed->targets + (size_t) at * each, feed->dataset->targets + sample * each,
           each * sizeof *feed->targets);
}

hpct_status hpct_feed_next(hpct_feed *feed, hpct_input *out)
{
    HPCT_TRY(hpct_model_await_input(feed->model));
    HPCT_TRY(hpct_pipeline_next(feed->pipeline, out));
    bool on_device = feed->way == HPCT_INPUT_DEVICE;
    for (int i = 0; feed->targets != NULL && i < out->count; i++)
        copy_targets(feed, i, out->indices != NULL ? out->indices[i] : feed->drawn[i].index);
    for (int i = 0; on_device && i < out->count; i++)
        feed->drawn[i].index -= (uint32_t) feed->first;
    if (on_device)
        hpct_model_set_resident_input(feed->model, feed->resident, feed->drawn);
    else
        hpct_model_set_input(feed->model, out->pixels, out->labels);
    if (feed->targets == NULL)
        return hpct_model_mix_labels(feed->model, out->count, on_device ? NULL : out->others,
                                     on_device ? NULL : out->shares);
    hpct_model_set_targets(feed->model, feed->targets);
    return HPCT_OK;
}

double hpct_feed_waited(const hpct_feed *feed)
{
    return hpct_pipeline_waited(feed->pipeline);
}

void hpct_feed_close(hpct_feed *feed)
{
    if (feed == NULL)
        return;
    char *told = hpct_error_keep();
    hpct_model_wait(feed->model);                  /* it may still read the input */
    hpct_model_set_input(feed->model, NULL, NULL); /* whose memory is freed next */
    hpct_pipeline_close(feed->pipeline);
    hpct_model_return_host(feed->model, feed->drawn);
    hpct_model_return_host(feed->model, feed->targets);
    hpct_resident_close(feed->resident);
    hpct_error_restore(told); /* later errors are consequences */
    free(feed);
}
