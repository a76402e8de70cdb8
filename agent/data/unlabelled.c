/* Chooses pictures by the folders in their names that are splits. */
#include "agent/data/unlabelled.h"

#include "agent/data/listing.h"
#include "agent/data/notes.h"
#include "agent/data/split_name.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define NUM_SPLITS 3

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hpct_data_entry *) a)->name, ((const hpct_data_entry *) b)->name);
}

/* Of the first folder in its name that is one. */
static int split_of(const hpct_data_entry *entry)
{
    const char *name = entry->name, *end;
    for (; (end = strchr(name, '/')) != NULL; name = end + 1) {
        int split = hpct_data_split_word(name, (size_t) (end - name));
        if (split != HPCT_DATA_NO_SPLIT)
            return split;
    }
    return HPCT_DATA_NO_SPLIT;
}

/* The split to keep; HPCT_DATA_NO_SPLIT: everything. One word alone may be a class: a train. */
static int find_split(const hpct_data_listing *listing, hpct_split wanted)
{
    bool has[NUM_SPLITS] = {false};
    for (size_t i = 0; i < listing->count; i++) {
        int split = split_of(&listing->entries[i]);
        if (split != HPCT_DATA_NO_SPLIT)
            has[split] = true;
    }
    if (!has[HPCT_TRAIN] || (!has[HPCT_TEST] && !has[HPCT_VALIDATION]))
        return HPCT_DATA_NO_SPLIT;
    if (has[wanted])
        return (int) wanted;
    return wanted == HPCT_TEST ? HPCT_VALIDATION : HPCT_TEST;
}

/* *loose: how many pictures are in no split's folder. */
static void keep_split(hpct_data_listing *listing, int split, size_t *loose)
{
    size_t kept = 0;
    *loose = 0;
    for (size_t i = 0; i < listing->count; i++) {
        hpct_data_entry *entry = &listing->entries[i];
        int own = split_of(entry);
        *loose += own == HPCT_DATA_NO_SPLIT;
        if (own == split)
            listing->entries[kept++] = *entry;
        else
            free(entry->name);
    }
    listing->count = kept;
}

static hpct_status fail_empty(const hpct_data_listing *listing, const char *path)
{
    if (listing->others > 0)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s: there are no pictures in it that can be read: %zu of other formats "
                         "(the first: %s)",
                         path, listing->others, listing->other);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no pictures in it", path);
}

hpct_status hpct_data_unlabelled_choose(hpct_data_listing *listing, hpct_split split,
                                        const char *path)
{
    size_t loose = 0;
    hpct_data_listing_drop_folders(listing);
    if (listing->count == 0)
        return fail_empty(listing, path);
    qsort(listing->entries, listing->count, sizeof *listing->entries, by_name);
    int chosen = find_split(listing, split);
    if (chosen != HPCT_DATA_NO_SPLIT)
        keep_split(listing, chosen, &loose);
    for (size_t i = 0; i < listing->count; i++) {
        listing->entries[i].label = 0;
        listing->entries[i].class_name = 0;
    }
    if (loose > 0)
        HPCT_TRY(hpct_data_note(&listing->notes, "%zu picture%s in no split's folder %s left out",
                                loose, loose == 1 ? "" : "s", loose == 1 ? "is" : "are"));
    return hpct_data_listing_note_others(listing);
}
