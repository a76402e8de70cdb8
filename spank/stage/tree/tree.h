/* spank/stage/tree/tree.h - removes a user's tree. */
#ifndef HPCT_SPANK_STAGE_TREE_TREE_H
#define HPCT_SPANK_STAGE_TREE_TREE_H

#include <stdbool.h>

#include "spank/stage/tree/report.h"

/* Removes `name` in `parent` and everything below, making folders writable. For the user's own
 * files only; follows no link. Sends heartbeats to `report` (may be NULL). */
void hpct_tree_remove(int parent, const char *name, hpct_report *report);

/* The same with a timeout in seconds: false if something is left. */
bool hpct_tree_remove_within(int parent, const char *name, double seconds);

#endif
