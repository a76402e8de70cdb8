/* agent/data/levels.h - finds which folders in the paths of pictures are splits and which are
 * classes. Uses names only. */
#ifndef HPCT_AGENT_DATA_LEVELS_H
#define HPCT_AGENT_DATA_LEVELS_H

#include "agent/data/entries.h"

#include <hpctrain/status.h>

#define HPCT_LOOSE (-3) /* picture outside of class folders, or of splits */

/* Sorts the entries by name; sets their class_name, and their label to the split (HPCT_NO_SPLIT
 * without splits) or HPCT_LOOSE. HPCT_ERR_DATA if that is ambiguous; `path` is for messages, and
 * its last component may name the split. */
hpct_status hpct_levels_find(hpct_listing *listing, const char *path);

#endif
