/* agent/data/levels.h - which folders in the names of pictures are splits, and which are classes.
 * Knows names alone. */
#ifndef HPCT_DATA_LEVELS_H
#define HPCT_DATA_LEVELS_H

#include "agent/data/listing.h"

#define HPCT_LOOSE (-3) /* beside the classes, or beside the splits */

/* Sorts the entries by name and sets their class_name, and in their label the split (HPCT_NO_SPLIT
 * where there are none), or HPCT_LOOSE. HPCT_ERR_DATA where that cannot be told; `path` is for
 * messages, and may itself say of what split they are. */
hpct_status hpct_levels_find(hpct_listing *listing, const char *path);

#endif
