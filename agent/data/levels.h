/* agent/data/levels.h - finds which folders in the paths of pictures are splits and which are
 * classes. Uses names only. */
#ifndef HPCT_AGENT_DATA_LEVELS_H
#define HPCT_AGENT_DATA_LEVELS_H

#include "agent/data/entries.h"

#include <hpctrain/status.h>

#define HPCT_DATA_LOOSE (-3) /* picture outside of class folders, or of splits */

/* Sorts the entries by name; sets their class_name, and their label to the split
 * (HPCT_DATA_NO_SPLIT without splits) or HPCT_DATA_LOOSE. HPCT_ERR_DATA if that is ambiguous;
 * `path` is for messages, and its last component may name the split. */
hpct_status hpct_data_levels_find(hpct_data_listing *listing, const char *path);

#endif
