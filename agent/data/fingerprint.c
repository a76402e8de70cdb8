/* Hashes of file names, labels and some pictures, which checkpoints keep. */
#include "agent/data/fingerprint.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "base/fnv.h"
#include "base/status.h"

#include <string.h>

#define PICTURES 16 /* of which the bytes are hashed, evenly spread */

/* The n-th of the pictures that are looked at; *count: how many there are. */
static size_t spread(size_t size, size_t n, size_t *count)
{
    *count = size < PICTURES ? size : PICTURES;
    return *count < 2 ? 0 : n * (size - 1) / (*count - 1);
}

/* Names from the class on: an archive may have folders above. The end of a name is hashed too, so
 * that two names are not one. */
static uint64_t hash_files(const hpct_dataset *dataset)
{
    uint64_t hash = HPCT_FNV_START;
    for (size_t i = 0; i < dataset->size; i++) {
        const hpct_data_entry *entry = &dataset->encoded.entries[i];
        uint64_t bytes = entry->bytes;
        const char *name = entry->name + entry->class_name;
        hash = hpct_fnv(hash, name, strlen(name) + 1);
        hash = hpct_fnv(hash, &bytes, sizeof bytes);
    }
    return hash;
}

hpct_status hpct_data_fingerprint_encoded(hpct_dataset *dataset)
{
    hpct_data_room room = {0};
    hpct_status status = HPCT_OK;
    size_t count = 1;
    dataset->seen =
        (hpct_data_fingerprint){.files = hash_files(dataset), .pictures = HPCT_FNV_START};
    for (size_t n = 0; n < count && status == HPCT_OK; n++) {
        hpct_data_coded coded;
        status = hpct_dataset_coded(dataset, spread(dataset->size, n, &count), &room, &coded);
        if (status == HPCT_OK)
            dataset->seen.pictures = hpct_fnv(dataset->seen.pictures, coded.bytes, coded.num_bytes);
    }
    hpct_data_room_free(&room);
    return status;
}

static uint64_t hash_stored(const hpct_dataset *dataset)
{
    uint64_t hash = HPCT_FNV_START;
    size_t each = dataset->stored_elements, count = 1;
    for (size_t n = 0; n < count; n++)
        hash = hpct_fnv(hash, dataset->pixels + spread(dataset->size, n, &count) * each, each);
    return hash;
}

void hpct_dataset_fingerprint(const hpct_dataset *dataset, hpct_data_fingerprint *out)
{
    *out = dataset->seen;
    out->labels =
        hpct_fnv(HPCT_FNV_START, dataset->labels, dataset->size * sizeof *dataset->labels);
    if (dataset->targets != NULL)
        out->labels = hpct_fnv(out->labels, dataset->targets,
                               dataset->size * (size_t) dataset->num_targets * sizeof(float));
    if (out->pictures == 0 && dataset->pixels != NULL)
        out->pictures = hash_stored(dataset);
}
