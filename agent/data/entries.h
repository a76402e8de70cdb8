/* agent/data/entries.h - pictures by name; agent/data/listing.h collects and selects them. */
#ifndef HPCT_AGENT_DATA_ENTRIES_H
#define HPCT_AGENT_DATA_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_data_entry {
    char *name;          /* path below the top; a folder's ends in '/' */
    size_t at, bytes;    /* offset and size in the bytes of an archive; 0 for files */
    uint32_t class_name; /* offset of the class in name */
    int32_t label;       /* set by hpct_data_listing_choose */
} hpct_data_entry;

typedef struct hpct_data_listing {
    hpct_data_entry *entries;
    size_t count, room;
    size_t others;  /* pictures of unsupported formats … */
    char *other;    /* … and the name of the first */
    char **classes; /* set by hpct_data_listing_choose; the index is the label */
    int num_classes;
    char *split;  /* likewise: folder of the split within the path; "": the whole path */
    char *notes;  /* agent/data/notes.h */
    bool lacking; /* likewise, on error: the split is missing */
} hpct_data_listing;

#endif
