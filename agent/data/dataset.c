/* Data sets in memory: opened by the format that claims the path; gathers batches. */
#include "agent/data/dataset.h"

#include "agent/data/augment.h"
#include "agent/data/foreign.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SAMPLE_ELEMENTS ((uint64_t) 1 << 26)
#define MAX_SIDE 8192          /* limit for resizing */
#define MOST_CLASSES (1 << 20) /* of --classes */

/* All but the last recognize a path by names of files; the last claims any folder with pictures. */
static const hpct_data_format *const formats[] = {
    &hpct_data_format_idx,          &hpct_data_format_npz, &hpct_data_format_cifar_binary,
    &hpct_data_format_cifar_pickle, &hpct_data_format_tar, &hpct_data_format_folder,
};
#define NUM_FORMATS (sizeof formats / sizeof formats[0])
#define NUM_NAMED 4

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
    return hpct_data_augment_check(o);
}

/* Sets the shape after resizing. A stored shape of rank 0 means that sizes differ. */
static hpct_status set_final_shape(hpct_dataset *dataset)
{
    const hpct_dataset_options *o = &dataset->options;
    hpct_shape *shape = &dataset->shape;
    bool deep = hpct_data_augment_is_deep(o),
         reshaped = o->height > 0 || o->flip || o->crop > 0 || deep;
    *shape = dataset->stored;
    if (reshaped && dataset->stored.rank != 0 && dataset->stored.rank != 2 &&
        dataset->stored.rank != 3)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: samples have %d dimensions: what is not a picture (height, width, "
                         "channels) cannot be resized or augmented",
                         dataset->path, dataset->stored.rank);
    int channels = dataset->stored.rank == 3 ? dataset->stored.size[2] : 1;
    if (o->rand_augment > 0 && dataset->stored.rank != 0 && channels != 1 && channels != 3)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: samples have %d channels: rand-augment is for pictures with 1 or 3",
                         dataset->path, channels);
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
    dataset->max_label = 0;
    dataset->min_label = dataset->labels[0];
    for (size_t i = 0; i < dataset->size; i++) {
        if (dataset->labels[i] > dataset->max_label)
            dataset->max_label = dataset->labels[i];
        if (dataset->labels[i] < dataset->min_label)
            dataset->min_label = dataset->labels[i];
    }
    return set_final_shape(dataset);
}

static hpct_status nothing_there(const char *path)
{
    HPCT_TRY(hpct_data_foreign_refuse(path));
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

/* The format that claims the path; HPCT_ERR_DATA if two data sets are below it. */
static hpct_status find_format(const hpct_data_format **out, const char *path, bool is_folder)
{
    *out = NULL;
    for (size_t i = 0; i < NUM_FORMATS && (*out == NULL || i < NUM_NAMED); i++) {
        if (!formats[i]->claims(path, is_folder))
            continue;
        if (*out != NULL)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: there are two data sets in it, %s and %s: give the folder of one",
                             path, (*out)->name, formats[i]->name);
        *out = formats[i];
    }
    return *out != NULL ? HPCT_OK : nothing_there(path);
}

hpct_status hpct_dataset_open_as(hpct_dataset **out, const char *path, hpct_split split,
                                 const hpct_dataset_options *options)
{
    struct stat info;
    const hpct_data_format *format = NULL;
    if (options != NULL)
        HPCT_TRY(check_options(options));
    if (path == NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--data is missing: give the path of a data set (hpc-train data --help), "
                         "or stage one with srun --hpc-train-stage=PATH");
    if (stat(path, &info) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno));
    HPCT_TRY(find_format(&format, path, S_ISDIR(info.st_mode)));
    hpct_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return hpct_fail_memory(sizeof *dataset);
    dataset->format = format;
    if (options != NULL)
        dataset->options = *options;
    if (split == HPCT_VALIDATION && !format->has_validation)
        split = HPCT_TEST;
    hpct_status status = format->read(dataset, path, split);
    if (status == HPCT_ERR_DATA)
        status = hpct_data_foreign_misnamed(path, status);
    if (status == HPCT_OK)
        status = hpct_dataset_finish(dataset);
    if (status != HPCT_OK) {
        bool lacking = dataset->lacking;
        hpct_dataset_free(dataset);
        *out = NULL;
        return lacking && options != NULL && options->may_lack ? HPCT_OK : status;
    }
    *out = dataset;
    return HPCT_OK;
}

hpct_status hpct_dataset_open(hpct_dataset **out, const char *path, hpct_split split)
{
    return hpct_dataset_open_as(out, path, split, NULL);
}

void hpct_data_encoded_free(hpct_data_encoded *encoded, size_t count)
{
    for (size_t i = 0; encoded->entries != NULL && i < count; i++)
        free(encoded->entries[i].name);
    free(encoded->entries);
    free(encoded->bytes);
    *encoded = (hpct_data_encoded){0};
}

void hpct_dataset_free(hpct_dataset *dataset)
{
    if (dataset == NULL)
        return;
    hpct_data_encoded_free(&dataset->encoded, dataset->size);
    for (int i = 0; i < dataset->num_classes; i++)
        free(dataset->classes[i]);
    free(dataset->classes);
    free(dataset->pixels);
    free(dataset->labels);
    free(dataset->targets);
    free(dataset->path);
    free(dataset->label_path);
    free(dataset->source);
    free(dataset->notes);
    free(dataset);
}

/* ---- numbering of classes ---- */

/* Class names, by index, that labels are converted to. */
typedef struct numbering {
    char *const *names;
    int count;
    const char *source; /* where the names are from, for messages */
} numbering;

static int find_class(const numbering *like, const char *name)
{
    for (int i = 0; i < like->count; i++) {
        if (strcmp(like->names[i], name) == 0)
            return i;
    }
    return -1;
}

static bool has_samples(const hpct_dataset *dataset, int label)
{
    for (size_t i = 0; i < dataset->size; i++) {
        if (dataset->labels[i] == label)
            return true;
    }
    return false;
}

/* Sets the class names of `dataset`. */
static hpct_status copy_classes(hpct_dataset *dataset, const numbering *like)
{
    char **classes = calloc((size_t) like->count + 1, sizeof *classes);
    bool whole = classes != NULL;
    for (int i = 0; whole && i < like->count; i++)
        whole = (classes[i] = strdup(like->names[i])) != NULL;
    for (int i = 0; i < dataset->num_classes; i++)
        free(dataset->classes[i]);
    free(dataset->classes);
    dataset->classes = classes;
    dataset->num_classes = classes != NULL ? like->count : 0;
    return whole ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status number_by(hpct_dataset *dataset, const numbering *like)
{
    if (dataset->num_classes <= dataset->max_label)
        return HPCT_OK; /* labels without names are kept */
    int *numbers = malloc((size_t) dataset->num_classes * sizeof *numbers);
    if (numbers == NULL)
        return hpct_fail_memory((size_t) dataset->num_classes * sizeof *numbers);
    hpct_status status = HPCT_OK;
    bool same = dataset->num_classes == like->count;
    for (int i = 0; i < dataset->num_classes && status == HPCT_OK; i++) {
        numbers[i] = find_class(like, dataset->classes[i]);
        same = same && numbers[i] == i;
        if (numbers[i] < 0 && has_samples(dataset, i))
            status = hpct_fail(HPCT_ERR_DATA, "%s: the class %s is none of the %d classes of %s",
                               hpct_dataset_source(dataset), dataset->classes[i], like->count,
                               like->source);
    }
    if (status == HPCT_OK && !same) {
        for (size_t i = 0; i < dataset->size; i++)
            dataset->labels[i] = numbers[dataset->labels[i]];
        status = copy_classes(dataset, like);
    }
    if (status == HPCT_OK)
        status = hpct_dataset_finish(dataset);
    free(numbers);
    return status;
}

hpct_status hpct_dataset_number_as(hpct_dataset *dataset, const hpct_dataset *like)
{
    numbering by = {like->classes, like->num_classes, hpct_dataset_source(like)};
    if (dataset->targets != NULL || like->targets != NULL)
        return HPCT_OK; /* hpct_fit compares the columns */
    return like->num_classes > like->max_label ? number_by(dataset, &by) : HPCT_OK;
}

static hpct_status compare_columns(const hpct_dataset *dataset, char *const *names, int count)
{
    if (dataset->targets == NULL)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the weights are of a model with a number for each output (%s%s), not "
                         "with classes: give the numbers with --labels FILE.csv",
                         hpct_dataset_source(dataset), names[0], count > 1 ? ", ..." : "");
    if (dataset->num_targets != count)
        return hpct_fail(HPCT_ERR_DATA, "%s has %d columns of numbers, the weights have %d",
                         dataset->label_path, dataset->num_targets, count);
    for (int i = 0; i < count; i++) {
        if (strcmp(dataset->classes[i], names[i]) != 0)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s, line 1, column %d: it is %s, and %s in the weights: the columns "
                             "must be the same",
                             dataset->label_path, i + 2, dataset->classes[i], names[i]);
    }
    return HPCT_OK;
}

/* Weights of other programs have no names. */
static hpct_status compare_outputs(const hpct_dataset *dataset, const hpct_model *model)
{
    char **names;
    int count;
    HPCT_TRY(hpct_model_output_names(model, &names, &count, NULL));
    hpct_status status = count > 0 ? compare_columns(dataset, names, count) : HPCT_OK;
    free(names);
    return status;
}

hpct_status hpct_dataset_number_for(hpct_dataset *dataset, const hpct_model *model)
{
    numbering by = {.source = "the weights"};
    char **names;
    hpct_status status = hpct_model_class_names(model, &names, &by.count);
    by.names = names;
    bool numbers = dataset->num_classes <= dataset->max_label; /* labels without names */
    if (status == HPCT_OK)
        status = compare_outputs(dataset, model);
    if (dataset->targets != NULL)
        by.count = 0;
    if (status == HPCT_OK && by.count > 0 && numbers && dataset->max_label >= by.count)
        status =
            hpct_fail(HPCT_ERR_DATA, "label %d in %s is not among the %d classes of the weights",
                      dataset->max_label, hpct_dataset_source(dataset), by.count);
    else if (status == HPCT_OK && by.count > 0)
        status = number_by(dataset, &by);
    free(names);
    return status;
}

hpct_status hpct_dataset_check_classes(const hpct_dataset *dataset, const hpct_dataset *like)
{
    for (int i = 0; i < dataset->num_classes && i < like->num_classes; i++) {
        if (strcmp(dataset->classes[i], like->classes[i]) != 0)
            return hpct_fail(HPCT_ERR_DATA,
                             "class %d is %s in %s, but %s in %s: number the one as the other "
                             "(hpct_dataset_number_as)",
                             i, dataset->classes[i], hpct_dataset_source(dataset), like->classes[i],
                             hpct_dataset_source(like));
    }
    return HPCT_OK;
}

static bool is_same_file(const hpct_dataset *a, const hpct_dataset *b, size_t index)
{
    char one[4096], two[4096];
    snprintf(one, sizeof one, "%s/%s", a->path, a->encoded.entries[index].name);
    snprintf(two, sizeof two, "%s/%s", b->path, b->encoded.entries[index].name);
    return hpct_file_same_names(one, two);
}

bool hpct_dataset_is_same(const hpct_dataset *a, const hpct_dataset *b)
{
    const hpct_data_encoded *e = &a->encoded, *f = &b->encoded;
    if (a->size != b->size)
        return false;
    if (a->pixels != NULL && b->pixels != NULL)
        return a->stored_elements == b->stored_elements &&
               memcmp(a->pixels, b->pixels, a->size * a->stored_elements) == 0;
    if (a->pixels != NULL || b->pixels != NULL)
        return false;
    if (e->bytes != NULL && f->bytes != NULL)
        return e->num_bytes == f->num_bytes && memcmp(e->bytes, f->bytes, e->num_bytes) == 0;
    return e->bytes == NULL && f->bytes == NULL && is_same_file(a, b, 0) &&
           is_same_file(a, b, a->size - 1);
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

/* ---- gathering ---- */

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
    const hpct_dataset_options *o = &dataset->options;
    bool augmented = training && (o->flip || o->crop > 0 || hpct_data_augment_is_deep(o));
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

/* ---- checks against a model ---- */

const char *hpct_data_shape_text(char *text, size_t size, hpct_shape shape)
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

/* "28x28x3", or "28x28x3 (turned grey: 28x28x1)" if the model gets colour pictures in grey. */
static const char *samples_text(char *text, size_t size, const hpct_dataset *dataset)
{
    char grey[64];
    const hpct_data_encoded *encoded = &dataset->encoded;
    hpct_shape shape = dataset->shape;
    if (dataset->options.channels != 1 || encoded->colour == 0 || shape.rank != 3)
        return hpct_data_shape_text(text, size, shape);
    hpct_data_shape_text(grey, sizeof grey, shape);
    shape.size[2] = 3;
    hpct_data_shape_text(text, size, shape);
    size_t length = strlen(text);
    snprintf(text + length, size - length, " (turned grey: %s)", grey);
    return text;
}

hpct_status hpct_dataset_check_sizes(const hpct_dataset *dataset)
{
    const hpct_data_encoded *encoded = &dataset->encoded;
    if (dataset->stored.rank != 0 || dataset->options.height != 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: the sizes of %s and %s differ: give one for all (--resize WxH)",
                     dataset->path, encoded->entries[0].name, encoded->entries[encoded->odd].name);
}

/* Labels that are not below `outputs`. */
static hpct_status refuse_labels(const hpct_dataset *dataset, int outputs)
{
    const char *file = dataset->label_path != NULL ? dataset->label_path : dataset->path;
    bool from_one = dataset->min_label == 1 && dataset->max_label == outputs;
    int classes = hpct_dataset_num_classes(dataset);
    char advice[192] = "";
    size_t i = 0;
    if (classes <= MOST_CLASSES)
        snprintf(advice, sizeof advice,
                 "; %sgive it %d (--classes %d, or units of the last layer of FILE.json)",
                 from_one ? "no label is 0: do they begin at 1? Else " : "", classes, classes);
    if (dataset->num_classes > dataset->max_label)
        return hpct_fail(HPCT_ERR_DATA, "%s: there are %d classes (%s, %s%s), the model has %d%s",
                         file, classes, dataset->classes[0], dataset->classes[1],
                         classes > 2 ? ", ..." : "", outputs, advice);
    while (dataset->labels[i] < outputs)
        i++;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: label %d of sample %zu is out of range: the model has %d classes (0 to "
                     "%d)%s",
                     file, (int) dataset->labels[i], i, outputs, outputs - 1, advice);
}

hpct_status hpct_dataset_check(const hpct_dataset *dataset, hpct_shape input, int outputs)
{
    char have[128], want[64];
    HPCT_TRY(hpct_dataset_check_sizes(dataset));
    hpct_shape a = without_ones(dataset->shape), b = without_ones(input);
    /* A flat vector of all pixels is accepted, as Keras users reshape pictures for Dense layers. */
    bool row = b.rank == 1 && dataset->elements == (size_t) b.size[0];
    if (!row && (a.rank != b.rank || memcmp(a.size, b.size, sizeof a.size) != 0))
        return hpct_fail(
            HPCT_ERR_DATA,
            "%s: samples are %s, the model's input is %s; pictures of another size can "
            "be resized (--resize WxH)",
            dataset->path, samples_text(have, sizeof have, dataset),
            hpct_data_shape_text(want, sizeof want, input));
    return dataset->max_label < outputs ? HPCT_OK : refuse_labels(dataset, outputs);
}

const char *hpct_dataset_sample_name(const hpct_dataset *dataset, size_t index)
{
    const hpct_data_entry *entries = dataset->encoded.entries;
    return entries != NULL ? entries[index].name : NULL;
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

const char *hpct_dataset_source(const hpct_dataset *dataset)
{
    return dataset->source != NULL ? dataset->source : dataset->path;
}

const char *hpct_dataset_format(const hpct_dataset *dataset)
{
    return dataset->format->name;
}
