/* agent/data/listing.h - pictures by class, from names in a folder or archive:
 * [PREFIX/]SPLIT/CLASS/FILE or CLASS/FILE (agent/data/levels.h), FILE perhaps in subfolders. Uses
 * names only; reads nothing. */
#ifndef HPCT_AGENT_DATA_LISTING_H
#define HPCT_AGENT_DATA_LISTING_H

#include "agent/data/entries.h"

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

/* Kind of a file by its extension, case-insensitive. */
typedef enum hpct_data_named {
    HPCT_DATA_NAMED_UNKNOWN, /* if its first bytes are those of a picture, it counts as
                              * HPCT_DATA_NAMED_OTHER
                              */
    HPCT_DATA_NAMED_NOTHING, /* usual companions of pictures: .txt, .xml, .json … */
    HPCT_DATA_NAMED_PICTURE, /* .jpg, .jpeg, .jfif, .png … */
    HPCT_DATA_NAMED_OTHER,   /* picture of an unsupported format: .webp, .tif … */
} hpct_data_named;

hpct_data_named hpct_data_picture_named(const char *name);

/* A name created by the system: .DS_Store, ._x.jpg, __MACOSX, lost+found. */
bool hpct_data_is_hidden(const char *name);

bool hpct_data_name_is_utf8(const char *name, size_t length);

/* A name as UTF-8, for JSON; other bytes are written as, e.g., \xf1. NULL without memory; the
 * caller frees it. */
char *hpct_data_name_text(const char *name, size_t length);

/* Adds an entry; copies `name`. A folder at the level of classes is a class even if it has no
 * pictures. */
hpct_status hpct_data_listing_add(hpct_data_listing *listing, const char *name, size_t at,
                                  size_t bytes);

/* Counts a picture of an unsupported format, and adds its folder. */
hpct_status hpct_data_listing_add_other(hpct_data_listing *listing, const char *name);

/* Of pictures with one name among those from `first` on keeps the last, as unpacking a tar or zip
 * does, and adds a note with the number of the others. */
hpct_status hpct_data_listing_keep_last(hpct_data_listing *listing, size_t first);

/* Removes the folders: in WebDatasets they have no meaning. */
void hpct_data_listing_drop_folders(hpct_data_listing *listing);

/* Adds a note about pictures of unsupported formats; hpct_data_listing_choose calls it. */
hpct_status hpct_data_listing_note_others(hpct_data_listing *listing);

/* Numbers the classes, keeps the split's pictures and sorts them by class and name, as Keras'
 * image_dataset_from_directory does. Classes are numbered by name within the training split;
 * classes that only another split has follow, in that split only. If there are no validation
 * pictures, the test ones are used, and the reverse. Without split folders all entries serve as any
 * split. HPCT_ERR_DATA if splits and classes are ambiguous; HPCT_ERR_NO_INPUT if the split has no
 * pictures. `path` is for messages. */
hpct_status hpct_data_listing_choose(hpct_data_listing *listing, hpct_split split,
                                     const char *path);

void hpct_data_listing_free(hpct_data_listing *listing);

#endif
