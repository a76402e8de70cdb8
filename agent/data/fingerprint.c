/* FNV-1a (Fowler, Noll, Vo). */
#include "agent/data/fingerprint.h"

#include "agent/data/dataset.h"

#include <string.h>

#define FIRST UINT64_C(0xcbf29ce484222325)

static uint64_t add(uint64_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *) data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The end of a name is hashed too, so that two names are not one. */
static uint64_t add_files(uint64_t hash, const hpct_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = entries[i].bytes;
        hash = add(hash, entries[i].name, strlen(entries[i].name) + 1);
        hash = add(hash, &bytes, sizeof bytes);
    }
    return hash;
}

static uint64_t add_labels(uint64_t hash, const hpct_dataset *dataset)
{
    if (dataset->targets != NULL)
        hash = add(hash, dataset->targets,
                   dataset->size * (size_t) dataset->num_targets * sizeof *dataset->targets);
    for (int i = 0; dataset->label_path != NULL && i < dataset->num_classes; i++)
        hash = add(hash, dataset->classes[i], strlen(dataset->classes[i]) + 1);
    return hash;
}

uint64_t hpct_labels_fingerprint(const hpct_dataset *dataset)
{
    if (dataset->label_path == NULL)
        return 0;
    uint64_t hash = add_files(FIRST, dataset->encoded.entries, dataset->size);
    hash = add(hash, dataset->labels, dataset->size * sizeof *dataset->labels);
    return add_labels(hash, dataset);
}

uint64_t hpct_dataset_fingerprint(const hpct_dataset *dataset)
{
    uint64_t size = dataset->size, each = dataset->stored_elements;
    uint64_t hash = add(FIRST, &size, sizeof size);
    hash = add(hash, dataset->labels, dataset->size * sizeof *dataset->labels);
    hash = add_labels(hash, dataset);
    if (dataset->encoded.entries != NULL)
        hash = add_files(hash, dataset->encoded.entries, dataset->size);
    if (dataset->pixels == NULL || dataset->size == 0)
        return hash;
    hash = add(hash, dataset->pixels, each);
    return add(hash, dataset->pixels + (dataset->size - 1) * each, each);
}
