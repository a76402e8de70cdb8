/* A data set divided into training and validation part, with the numbers of Keras'
 * validation_split: of arrays the last samples, as fit() does it; of pictures in folders and
 * archives, which lie class by class, as many drawn out of all, as image_dataset_from_directory()
 * does it. The draw depends on the number of pictures alone, so that all ranks, a continued run and
 * evaluate hold out the same. */
#include "agent/data/dataset.h"
#include "agent/data/sampler.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keras rounds the two cases differently. */
static size_t count_held(const hpct_dataset *all, double share)
{
    double size = (double) all->size;
    return (size_t) (all->format->by_class ? share * size : size - floor(size * (1 - share)));
}

/* held[i]: whether sample i is held out. The caller frees it; NULL: out of memory. */
static bool *choose(const hpct_dataset *all, size_t count)
{
    bool *held = calloc(all->size, sizeof *held);
    uint32_t *order = malloc(all->size * sizeof *order);
    if (held != NULL && order != NULL) {
        if (all->format->by_class)
            hpct_data_shuffle(order, all->size, 0, 0);
        for (size_t i = all->size - count; i < all->size; i++)
            held[all->format->by_class ? order[i] : i] = true;
    }
    bool whole = order != NULL;
    free(order);
    if (whole)
        return held;
    free(held);
    return NULL;
}

/* Moves the rows that are held out to `out`, and closes the gaps. */
static void move_rows(void *rows, void *out, size_t bytes, const bool *held, size_t count)
{
    uint8_t *to = rows, *moved = out;
    for (size_t i = 0; rows != NULL && i < count; i++) {
        const uint8_t *from = (const uint8_t *) rows + i * bytes;
        memmove(held[i] ? moved : to, from, bytes);
        moved += held[i] ? bytes : 0;
        to += held[i] ? 0 : bytes;
    }
}

static bool copy_text(char **out, const char *text)
{
    *out = text != NULL ? strdup(text) : NULL;
    return (*out == NULL) == (text == NULL);
}

static bool copy_names(hpct_dataset *part, const hpct_dataset *all)
{
    bool whole = copy_text(&part->path, all->path) && copy_text(&part->label_path, all->label_path);
    part->classes = calloc((size_t) all->num_classes + 1, sizeof *part->classes);
    for (int i = 0; whole && part->classes != NULL && i < all->num_classes; i++)
        whole = copy_text(&part->classes[part->num_classes++], all->classes[i]);
    return whole && part->classes != NULL;
}

static bool set_source(hpct_dataset *part, const hpct_dataset *all, double share)
{
    bool drawn = all->format->by_class;
    if (asprintf(&part->source, "%s (%s%g %%%s)", hpct_dataset_source(all),
                 drawn ? "" : "the last ", share * 100, drawn ? " drawn from it" : "") >= 0)
        return true;
    part->source = NULL;
    return false;
}

/* Bytes of the encoded pictures that are held out. */
static size_t count_bytes(const hpct_dataset *all, const bool *held)
{
    size_t bytes = 0;
    for (size_t i = 0; all->encoded.bytes != NULL && i < all->size; i++)
        bytes += held[i] ? all->encoded.entries[i].bytes : 0;
    return bytes;
}

static void *room_like(const void *rows, size_t count, size_t bytes)
{
    return rows != NULL ? malloc(count * bytes) : NULL;
}

/* Memory for `count` samples; `all` is not changed. */
static bool make_room(hpct_dataset *part, const hpct_dataset *all, const bool *held, size_t count)
{
    hpct_data_encoded *encoded = &part->encoded;
    size_t target = (size_t) all->num_targets * sizeof *all->targets;
    *encoded = all->encoded;
    encoded->num_bytes = count_bytes(all, held);
    encoded->entries = room_like(all->encoded.entries, count, sizeof *encoded->entries);
    encoded->bytes = room_like(all->encoded.bytes, 1, encoded->num_bytes + 1);
    part->pixels = room_like(all->pixels, count, all->stored_elements);
    part->labels = room_like(all->labels, count, sizeof *part->labels);
    part->targets = room_like(all->targets, count, target);
    return (encoded->entries == NULL) == (all->encoded.entries == NULL) &&
           (encoded->bytes == NULL) == (all->encoded.bytes == NULL) &&
           (part->pixels == NULL) == (all->pixels == NULL) && part->labels != NULL &&
           (part->targets == NULL) == (all->targets == NULL);
}

/* Of the entries that were moved. The training part's bytes stay where they are. */
static void copy_bytes(hpct_dataset *part, const uint8_t *bytes)
{
    hpct_data_encoded *encoded = &part->encoded;
    size_t at = 0;
    for (size_t i = 0; encoded->bytes != NULL && i < part->size; i++) {
        hpct_data_entry *entry = &encoded->entries[i];
        memcpy(encoded->bytes + at, bytes + entry->at, entry->bytes);
        entry->at = at;
        at += entry->bytes;
    }
}

static void move_samples(hpct_dataset *all, hpct_dataset *part, const bool *held, size_t count)
{
    move_rows(all->encoded.entries, part->encoded.entries, sizeof(hpct_data_entry), held,
              all->size);
    move_rows(all->pixels, part->pixels, all->stored_elements, held, all->size);
    move_rows(all->labels, part->labels, sizeof *all->labels, held, all->size);
    move_rows(all->targets, part->targets, (size_t) all->num_targets * sizeof *all->targets, held,
              all->size);
    all->size -= count;
    part->size = count;
    copy_bytes(part, all->encoded.bytes);
    uint8_t *less =
        all->pixels != NULL ? realloc(all->pixels, all->size * all->stored_elements) : NULL;
    all->pixels = less != NULL ? less : all->pixels;
}

/* Empty parts, as in Keras, and pictures that cannot be read into a batch. */
static hpct_status check(const hpct_dataset *all, double share, size_t count)
{
    if (!(share > 0) || !(share < 1))
        return hpct_fail(HPCT_ERR_USAGE, "--validation-split is %g, it must be above 0 and below 1",
                         share);
    HPCT_TRY(hpct_dataset_check_sizes(all));
    if (count == 0 || count >= all->size)
        return hpct_fail(HPCT_ERR_DATA,
                         "--validation-split %g: of the %zu samples in %s, %zu would be held out "
                         "and %zu trained: both parts need at least one",
                         share, all->size, hpct_dataset_source(all), count, all->size - count);
    return HPCT_OK;
}

hpct_status hpct_dataset_hold_out(hpct_dataset *all, double share, hpct_dataset **out)
{
    *out = NULL;
    size_t count = share > 0 && share < 1 ? count_held(all, share) : 0;
    HPCT_TRY(check(all, share, count));
    hpct_dataset *part = malloc(sizeof *part);
    bool *held = choose(all, count);
    if (part == NULL || held == NULL) {
        free(part);
        free(held);
        return hpct_fail_memory(all->size);
    }
    *part = (hpct_dataset){.format = all->format,
                           .options = all->options,
                           .stored = all->stored,
                           .stored_elements = all->stored_elements,
                           .num_targets = all->num_targets,
                           .kind = all->kind};
    hpct_status status = HPCT_OK;
    if (!copy_names(part, all) || !set_source(part, all, share) ||
        !make_room(part, all, held, count))
        status = hpct_fail_memory(count * all->stored_elements);
    if (status == HPCT_OK) {
        move_samples(all, part, held, count);
        status = hpct_dataset_finish(all);
    }
    if (status == HPCT_OK)
        status = hpct_dataset_finish(part);
    free(held);
    if (status == HPCT_OK)
        *out = part;
    else
        hpct_dataset_free(part);
    return status;
}
