/* NumPy's .npz with the arrays of Keras' mnist.npz: x_train, y_train, x_test, y_test. */
#include "agent/data/npz.h"

#include "agent/data/archive.h"
#include "agent/data/grow.h"
#include "agent/data/npy.h"
#include "base/alloc.h"
#include "base/status.h"

#include <archive_entry.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[2][2] = {
    [HPCT_TRAIN] = {"x_train", "y_train"},
    [HPCT_TEST] = {"x_test", "y_test"},
};

typedef struct array {
    hpct_data_npy header;
    uint8_t *bytes;
} array;

typedef struct source {
    struct archive *archive;
    const char *name; /* for messages */
} source;

static hpct_status read_some(void *from, void *out, size_t bytes)
{
    source *s = from;
    size_t filled = 0;
    while (filled < bytes) {
        la_ssize_t got = archive_read_data(s->archive, (char *) out + filled, bytes - filled);
        if (got < 0)
            return hpct_data_archive_failed(s->archive, s->name);
        if (got == 0)
            return hpct_fail(HPCT_ERR_DATA, "%s: it is truncated: %zu of %zu bytes are missing",
                             s->name, bytes - filled, bytes);
        filled += (size_t) got;
    }
    return HPCT_OK;
}

static hpct_status read_array(array *out, struct archive *archive, const char *name)
{
    source from = {archive, name};
    uint8_t prefix[HPCT_DATA_NPY_PREFIX], extra;
    size_t prefix_length, text_length;
    char *text = NULL;
    HPCT_TRY(read_some(&from, prefix, sizeof prefix));
    HPCT_TRY(hpct_data_npy_read_prefix(prefix, &prefix_length, &text_length, name));
    text = malloc(text_length);
    if (text == NULL)
        return hpct_fail_memory(text_length);
    size_t have = sizeof prefix - prefix_length; /* of the text, already read with the prefix */
    memcpy(text, prefix + prefix_length, have);
    hpct_status status = read_some(&from, text + have, text_length - have);
    if (status == HPCT_OK)
        status = hpct_data_npy_read_text(&out->header, text, text_length, name);
    if (status == HPCT_OK)
        status = hpct_data_read_growing(&out->bytes, (size_t) out->header.bytes, read_some, &from);
    if (status == HPCT_OK) {
        la_ssize_t more = archive_read_data(archive, &extra, 1);
        if (more > 0)
            status = hpct_fail(HPCT_ERR_DATA, "%s: it is longer than its header says", name);
        else if (more < 0) /* libarchive verifies the checksum at the end */
            status = hpct_data_archive_failed(archive, name);
    }
    free(text);
    return status;
}

/* Converts integers of any width to labels. */
static hpct_status convert_labels(int32_t *labels, const array *y, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        size_t width = (size_t) y->header.item_size;
        for (size_t b = 0; b < width; b++)
            value |= (uint64_t) y->bytes[i * width + b] << (8 * b);
        bool negative = y->header.kind == 'i' && (value >> (8 * width - 1)) != 0;
        if (negative || value > INT32_MAX)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the label of sample %zu is out of range: it must "
                             "be 0 or more",
                             name, i);
        labels[i] = (int32_t) value;
    }
    return HPCT_OK;
}

/* Moves x's bytes to the data set on success. */
static hpct_status combine(hpct_dataset *dataset, array *x, const array *y, const char *x_name,
                           const char *y_name)
{
    if (x->header.kind != 'u' || x->header.item_size != 1)
        return hpct_fail(HPCT_ERR_DATA, "%s: pictures must be '|u1' (uint8)", x_name);
    if (x->header.rank < 2)
        return hpct_fail(HPCT_ERR_DATA, "%s: it has %d dimensions, pictures need at least 2",
                         x_name, x->header.rank);
    if (y->header.rank != 1 && !(y->header.rank == 2 && y->header.sizes[1] == 1))
        return hpct_fail(HPCT_ERR_DATA, "%s: labels must have the shape (n,) or (n, 1)", y_name);
    if (x->header.sizes[0] != y->header.sizes[0])
        return hpct_fail(HPCT_ERR_DATA,
                         "%s has %" PRIu64 " labels, but %s has %" PRIu64
                         " pictures: they do not belong together",
                         y_name, y->header.sizes[0], x_name, x->header.sizes[0]);
    HPCT_TRY(hpct_dataset_set_shape(dataset, x->header.rank - 1, x->header.sizes + 1, x_name));
    dataset->size = (size_t) x->header.sizes[0];
    dataset->labels = malloc((dataset->size + 1) * sizeof *dataset->labels);
    if (dataset->labels == NULL)
        return hpct_fail_memory(dataset->size * sizeof *dataset->labels);
    HPCT_TRY(convert_labels(dataset->labels, y, dataset->size, y_name));
    dataset->pixels = x->bytes;
    x->bytes = NULL;
    return HPCT_OK;
}

hpct_status hpct_data_npz_read(hpct_dataset *dataset, struct archive *archive, const char *path,
                               hpct_split split)
{
    array arrays[2] = {0};
    char *full[2] = {0};
    hpct_status status = HPCT_OK;
    struct archive_entry *entry;
    int code = ARCHIVE_OK;
    for (int i = 0; i < 2; i++) {
        status = hpct_alloc_text(&full[i], "%s/%s", path, names[split][i]);
        if (status != HPCT_OK)
            goto fail;
    }
    while ((arrays[0].bytes == NULL || arrays[1].bytes == NULL) &&
           (code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
        const char *name = archive_entry_pathname(entry);
        for (int i = 0; name != NULL && i < 2; i++) {
            size_t length = strlen(names[split][i]);
            if (strncmp(name, names[split][i], length) != 0 || strcmp(name + length, ".npy") != 0 ||
                arrays[i].bytes != NULL)
                continue;
            status = read_array(&arrays[i], archive, full[i]);
            if (status != HPCT_OK)
                goto fail;
        }
    }
    if (code != ARCHIVE_OK && code != ARCHIVE_EOF) {
        status = hpct_data_archive_failed(archive, path);
        goto fail;
    }
    for (int i = 0; i < 2; i++) {
        if (arrays[i].bytes == NULL) {
            status =
                hpct_fail(HPCT_ERR_DATA, "%s: there is no array '%s' in it", path, names[split][i]);
            goto fail;
        }
    }
    status = combine(dataset, &arrays[0], &arrays[1], full[0], full[1]);
    if (status == HPCT_OK) {
        dataset->path = full[1];
        full[1] = NULL;
    }

fail:
    for (int i = 0; i < 2; i++) {
        free(arrays[i].bytes);
        free(full[i]);
    }
    return status;
}

struct archive *hpct_data_npz_new_reader(void)
{
    struct archive *archive = archive_read_new();
    if (archive != NULL)
        archive_read_support_format_zip(archive);
    return archive;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    struct archive *archive = hpct_data_npz_new_reader();
    hpct_status status = hpct_data_archive_open(archive, path);
    if (status == HPCT_OK)
        status = hpct_data_npz_read(dataset, archive, path, split);
    archive_read_free(archive);
    return status;
}

static bool claims(const char *path, bool is_folder)
{
    return !is_folder && hpct_data_name_ends(path, ".npz");
}

const hpct_data_format hpct_data_format_npz = {
    .name = "npz",
    .looks_like = "an .npz file with x_train, y_train, x_test and y_test",
    .claims = claims,
    .read = read_split,
};
