/* Data sets in memory: opened by whichever format claims the path, gathered batch by batch. */
#include "agent/data/dataset.h"

#include "agent/memory.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SAMPLE_ELEMENTS ((uint64_t) 1 << 26)
#define MAX_SIDE 8192 /* to resize to */

/* The last one claims any folder with pictures. */
static const hpct_format *const formats[] = {
    &hpct_format_idx,          &hpct_format_npz, &hpct_format_cifar_binary,
    &hpct_format_cifar_pickle, &hpct_format_tar, &hpct_format_folder,
};
#define NUM_FORMATS (sizeof formats / sizeof formats[0])

/* ---- opening ---- */

static hpct_status check_options(const hpct_dataset_options *o)
{
    if (o->height < 0 || o->width < 0 || (o->height == 0) != (o->width == 0) ||
        o->height > MAX_SIDE || o->width > MAX_SIDE)
        return hpct_fail(HPCT_ERR_USAGE, "pictures cannot be resized to %dx%d", o->width,
                         o->height);
    if (o->channels != 0 && o->channels != 1 && o->channels != 3)
        return hpct_fail(HPCT_ERR_USAGE, "channels is %d, it must be 1 or 3", o->channels);
    if (o->crop < 0 || o->crop > MAX_SIDE || o->threads < 0)
        return hpct_fail(HPCT_ERR_USAGE, "crop and threads cannot be negative, nor crop above %d",
                         MAX_SIDE);
    return HPCT_OK;
}

/* The shape after resizing; rank 0 of the stored one means that sizes differ. */
static hpct_status set_final_shape(hpct_dataset *dataset)
{
    const hpct_dataset_options *o = &dataset->options;
    hpct_shape *shape = &dataset->shape;
    bool reshaped = o->height > 0 || o->flip || o->crop > 0;
    *shape = dataset->stored;
    if (reshaped && dataset->stored.rank != 0 && dataset->stored.rank != 2 &&
        dataset->stored.rank != 3)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: samples have %d dimensions: what is no picture (height, width, "
                         "channels) cannot be resized or augmented",
                         dataset->path, dataset->stored.rank);
    if (dataset->stored.rank == 0)
        *shape = HPCT_SHAPE(0, 0, o->channels == 1 ? 1 : 3);
    if (o->height > 0) {
        shape->size[0] = o->height;
        shape->size[1] = o->width;
    }
    dataset->elements = 1;
    for (int i = 0; i < shape->rank; i++)
        dataset->elements *= (size_t) shape->size[i];
    return HPCT_OK;
}

hpct_status hpct_dataset_finish(hpct_dataset *dataset)
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
    return set_final_shape(dataset);
}

static hpct_status nothing_there(const char *path)
{
    char list[2048];
    size_t length = 0;
    list[0] = '\0';
    for (size_t i = 0; i < NUM_FORMATS && length < sizeof list; i++)
        length += (size_t) snprintf(list + length, sizeof list - length, "%s%s",
                                    i == 0                 ? ""
                                    : i + 1 == NUM_FORMATS ? "; or "
                                                           : "; ",
                                    formats[i]->looks_like);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s: no data set is there that can be read: %s", path,
                     list);
}

hpct_status hpct_dataset_open_as(hpct_dataset **out, const char *path, hpct_split split,
                                 const hpct_dataset_options *options)
{
    struct stat info;
    const hpct_format *format = NULL;
    hpct_status status = options != NULL ? check_options(options) : HPCT_OK;
    if (status != HPCT_OK)
        return status;
    if (path == NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--data is missing: give the path of a data set (hpc-train data --help), "
                         "or stage one with srun --hpc-train-stage=PATH");
    if (stat(path, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < NUM_FORMATS && format == NULL; i++) {
        if (formats[i]->claims(path, S_ISDIR(info.st_mode)))
            format = formats[i];
    }
    if (format == NULL)
        return nothing_there(path);
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return hpct_fail_memory(sizeof *dataset);
    dataset->format = format;
    if (options != NULL)
        dataset->options = *options;
    status = format->read(dataset, path, split);
    if (status == HPCT_OK)
        status = hpct_dataset_finish(dataset);
    if (status != HPCT_OK) {
        hpct_dataset_free(dataset);
        return status;
    }
    *out = dataset;
    return HPCT_OK;
}

hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split)
{
    return hpct_dataset_open_as(out, path, split, NULL);
}

void hpct_dataset_free(hpct_dataset *dataset)
{
    if (dataset == NULL)
        return;
    hpct_encoded_free(&dataset->encoded, dataset->size);
    for (int i = 0; i < dataset->num_classes; i++)
        free(dataset->classes[i]);
    free(dataset->classes);
    free(dataset->pixels);
    free(dataset->labels);
    free(dataset->path);
    free(dataset);
}

/* ---- for the formats ---- */

size_t hpct_dataset_memory(const hpct_dataset *dataset)
{
    return dataset->options.memory > 0 ? dataset->options.memory
                                       : hpct_memory_share_now().bytes / 2;
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
        dataset->stored.size[i] = (int) sizes[i];
    }
    dataset->stored.rank = rank;
    dataset->stored_elements = (size_t) elements;
    return HPCT_OK;
}

/* ---- batches ---- */

void hpct_dataset_scale(const hpct_dataset *dataset, float *factor, float *offset)
{
    hpct_scaling scaling = dataset->options.scaling;
    *factor = scaling == HPCT_SCALE_UNIT        ? 1.0f / 255.0f
              : scaling == HPCT_SCALE_SYMMETRIC ? 1.0f / 127.5f
                                                : 1.0f;
    *offset = scaling == HPCT_SCALE_SYMMETRIC ? -1.0f : 0.0f;
}

static bool is_resized(const hpct_dataset *dataset)
{
    return dataset->stored.rank == 0 || dataset->shape.size[0] != dataset->stored.size[0] ||
           dataset->shape.size[1] != dataset->stored.size[1];
}

bool hpct_dataset_is_plain(const hpct_dataset *dataset, bool training)
{
    bool augmented = training && (dataset->options.flip || dataset->options.crop > 0);
    return dataset->pixels != NULL && !is_resized(dataset) && !augmented;
}

void hpct_dataset_gather(const hpct_dataset *dataset, const uint32_t *indices, int count,
                         float *pixels, int32_t *labels)
{
    size_t elements = dataset->elements;
    float factor, offset;
    hpct_dataset_scale(dataset, &factor, &offset);
    for (int i = 0; i < count; i++) {
        const uint8_t *src = dataset->pixels + (size_t) indices[i] * elements;
        float *dst = pixels + (size_t) i * elements;
#pragma omp simd
        for (size_t j = 0; j < elements; j++)
            dst[j] = (float) src[j] * factor + offset;
        labels[i] = dataset->labels[indices[i]];
    }
}

hpct_status hpct_dataset_fetch(const hpct_dataset *dataset, size_t index, hpct_room *room,
                               hpct_picture *out)
{
    const hpct_shape *stored = &dataset->stored;
    if (dataset->pixels == NULL)
        return hpct_encoded_fetch(dataset, index, room, out);
    *out = (hpct_picture){
        .pixels = dataset->pixels + index * dataset->stored_elements,
        .height = stored->size[0],
        .width = stored->rank > 1 ? stored->size[1] : 1,
        .channels = stored->rank > 2 ? stored->size[2] : 1,
    };
    return HPCT_OK;
}

/* ---- against a model ---- */

const char *hpct_shape_text(char *text, size_t size, hpct_shape shape)
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
    if (dataset->stored.rank == 0 && dataset->options.height == 0)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the sizes of %s and %s differ: give one for all (--resize WxH)",
                         dataset->path, dataset->encoded.entries[0].name,
                         dataset->encoded.entries[dataset->encoded.odd].name);
    hpct_shape a = without_ones(dataset->shape), b = without_ones(input);
    if (a.rank != b.rank || memcmp(a.size, b.size, sizeof a.size) != 0)
        return hpct_fail(
            HPCT_ERR_DATA,
            "%s: samples are %s, the model's input is %s; pictures of another size can "
            "be resized (--resize WxH)",
            dataset->path, hpct_shape_text(have, sizeof have, dataset->shape),
            hpct_shape_text(want, sizeof want, input));
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

int hpct_dataset_num_classes(const hpct_dataset *dataset)
{
    if (dataset->num_classes > dataset->max_label)
        return dataset->num_classes;
    return dataset->max_label < INT_MAX ? dataset->max_label + 1 : INT_MAX;
}

const char *hpct_dataset_format(const hpct_dataset *dataset)
{
    return dataset->format->name;
}
