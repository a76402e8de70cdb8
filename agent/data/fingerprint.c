/* FNV-1a (Fowler, Noll, Vo). */
#include "agent/data/fingerprint.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "base/status.h"

#include <string.h>

#define FIRST UINT64_C(0xcbf29ce484222325)
#define PICTURES 16 /* of which the bytes are hashed, evenly spread */

static uint64_t add(uint64_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *) data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

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
    uint64_t hash = FIRST;
    for (size_t i = 0; i < dataset->size; i++) {
        const hpct_entry *entry = &dataset->encoded.entries[i];
        uint64_t bytes = entry->bytes;
        const char *name = entry->name + entry->class_name;
        hash = add(hash, name, strlen(name) + 1);
        hash = add(hash, &bytes, sizeof bytes);
    }
    return hash;
}

hpct_status hpct_fingerprint_encoded(hpct_dataset *dataset)
{
    hpct_room room = {0};
    hpct_status status = HPCT_OK;
    size_t count = 1;
    dataset->seen = (hpct_fingerprint){.files = hash_files(dataset), .pictures = FIRST};
    for (size_t n = 0; n < count && status == HPCT_OK; n++) {
        hpct_coded coded;
        status = hpct_dataset_coded(dataset, spread(dataset->size, n, &count), &room, &coded);
        if (status == HPCT_OK)
            dataset->seen.pictures = add(dataset->seen.pictures, coded.bytes, coded.num_bytes);
    }
    hpct_room_free(&room);
    return status;
}

static uint64_t hash_stored(const hpct_dataset *dataset)
{
    uint64_t hash = FIRST;
    size_t each = dataset->stored_elements, count = 1;
    for (size_t n = 0; n < count; n++)
        hash = add(hash, dataset->pixels + spread(dataset->size, n, &count) * each, each);
    return hash;
}

void hpct_dataset_fingerprint(const hpct_dataset *dataset, hpct_fingerprint *out)
{
    *out = dataset->seen;
    out->labels = add(FIRST, dataset->labels, dataset->size * sizeof *dataset->labels);
    if (dataset->targets != NULL)
        out->labels = add(out->labels, dataset->targets,
                          dataset->size * (size_t) dataset->num_targets * sizeof(float));
    if (out->pictures == 0 && dataset->pixels != NULL)
        out->pictures = hash_stored(dataset);
}
