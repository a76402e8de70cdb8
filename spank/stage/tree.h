/* spank/stage/tree.h - removing what the user has made, a tree as a whole. */
#ifndef HPCT_STAGE_TREE_H
#define HPCT_STAGE_TREE_H

#include <stdbool.h>

#include "spank/stage/report.h"

/* Removes `name` in `parent` and all below it, making folders writable on the way. The user's own
 * files only; no link is followed. Whoever waits for `report` is told that it goes on (NULL:
 * nobody). */
void hpct_tree_remove(int parent, const char *name, hpct_report *report);

/* The same, but gives up after so many seconds: false when something is left. */
bool hpct_tree_remove_within(int parent, const char *name, double seconds);

#endif
