/* agent/data/listing.h - pictures by class, as a folder or an archive names them:
 * [PREFIX/]SPLIT/CLASS/FILE or CLASS/FILE, SPLIT being train, or test, val or validation.
 * Knows names alone; reads nothing. */
#ifndef HPCT_DATA_LISTING_H
#define HPCT_DATA_LISTING_H

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_entry {
    char *name;          /* FILE and what stands before it, as it was found */
    size_t at, bytes;    /* where an archive's pictures were read to; 0 for files */
    uint32_t class_name; /* where it begins in name */
    int32_t label;       /* by hpct_listing_choose */
} hpct_entry;

typedef struct hpct_listing {
    hpct_entry *entries;
    size_t count, room;
    char **classes; /* by hpct_listing_choose: sorted as strings, the index is the label */
    int num_classes;
} hpct_listing;

/* Whether a file's name ends like a picture's: .jpg, .jpeg, .png, in any case. */
bool hpct_is_picture_name(const char *name);

/* Adds an entry; `name` is copied. */
hpct_status hpct_listing_add(hpct_listing *listing, const char *name, size_t at, size_t bytes);

/* Numbers the classes, keeps the split's entries and sorts them by class and name, as Keras'
 * image_dataset_from_directory does. Classes are numbered over both splits together. Without any
 * train/ or test/ the entries are all there is and serve as either split. HPCT_ERR_DATA where a
 * picture has no class; HPCT_ERR_NO_INPUT where the split has none. `path` is for messages. */
hpct_status hpct_listing_choose(hpct_listing *listing, hpct_split split, const char *path);

void hpct_listing_free(hpct_listing *listing);

#endif
