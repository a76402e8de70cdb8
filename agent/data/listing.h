/* agent/data/listing.h - pictures by class, as a folder or an archive names them:
 * [PREFIX/]SPLIT/CLASS/FILE or CLASS/FILE (agent/data/levels.h), FILE perhaps in folders of its
 * own. Knows names alone; reads nothing. */
#ifndef HPCT_DATA_LISTING_H
#define HPCT_DATA_LISTING_H

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_entry {
    char *name;       /* FILE and what stands before it, as it was found; a folder's ends in '/' */
    size_t at, bytes; /* where an archive's pictures were read to; 0 for files */
    uint32_t class_name; /* where it begins in name */
    int32_t label;       /* by hpct_listing_choose */
} hpct_entry;

typedef struct hpct_listing {
    hpct_entry *entries;
    size_t count, room;
    size_t others;  /* pictures of kinds that cannot be read … */
    char *other;    /* … and the name of the first */
    char **classes; /* by hpct_listing_choose; the index is the label */
    int num_classes;
    char *split;  /* likewise: the folder of the split within the path; "": all of it */
    char *notes;  /* agent/data/notes.h */
    bool lacking; /* likewise, where it fails: nothing of the split is there */
} hpct_listing;

/* What a file's name says that it is, by its end, in any case. */
typedef enum hpct_named {
    HPCT_NAMED_NOTHING,
    HPCT_NAMED_PICTURE, /* .jpg, .jpeg, .jfif, .png … */
    HPCT_NAMED_OTHER,   /* a picture of a kind that cannot be read: .webp, .tif … */
} hpct_named;

hpct_named hpct_picture_named(const char *name);

/* A name that a system adds by itself: .DS_Store, ._x.jpg, __MACOSX, lost+found. */
bool hpct_is_hidden(const char *name);

/* Adds an entry; `name` is copied. A folder counts as a class where its place is that of one, even
 * if it holds no pictures. */
hpct_status hpct_listing_add(hpct_listing *listing, const char *name, size_t at, size_t bytes);

/* Counts a picture that cannot be read, and adds its folder. */
hpct_status hpct_listing_add_other(hpct_listing *listing, const char *name);

/* Those of WebDatasets, whose folders mean nothing. */
void hpct_listing_drop_folders(hpct_listing *listing);

/* Notes the pictures that could not be read; hpct_listing_choose does. */
hpct_status hpct_listing_note_others(hpct_listing *listing);

/* Numbers the classes, keeps the split's pictures and sorts them by class and name, as Keras'
 * image_dataset_from_directory does: by the names of the training split's classes; those that only
 * another split has are known to it alone, behind them. Validation pictures are the test ones where
 * there are no others, and the reverse. Without folders of splits the entries are all there is and
 * serve as any split. HPCT_ERR_DATA where it cannot be told what is a split and what a class;
 * HPCT_ERR_NO_INPUT where the split has none. `path` is for messages. */
hpct_status hpct_listing_choose(hpct_listing *listing, hpct_split split, const char *path);

void hpct_listing_free(hpct_listing *listing);

#endif
