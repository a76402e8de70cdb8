/* spank/stage/tree/folders.h - which paths stay below a root; opens its folders component by
 * component without following links, where recently used ones stay open (thread-safe), and removes
 * trees. */
#ifndef HPCT_SPANK_STAGE_TREE_FOLDERS_H
#define HPCT_SPANK_STAGE_TREE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "spank/stage/tree/report.h"

/* Whether `path` is "" or components separated by one '/', none "." or ".." or longer than 255
 * bytes, at most HPCT_STAGE_ITEM_DEPTH, shorter than PATH_MAX. Other bytes are allowed. */
bool hpct_stage_item_path_ok(const char *path);

/* Whether a symbolic link at `path` with this text stays within the root: relative, ".." only at
 * its beginning, not above the root. Links on its way are checked themselves, so no chain of links
 * leaves the root. */
bool hpct_stage_item_link_stays(const char *path, const char *text);

typedef struct hpct_stage_folders hpct_stage_folders;

/* Opens folders below `root`, which the caller keeps open. `make`: create missing folders (mode
 * 0700). `follow`: follow symbolic links in paths. NULL if out of memory. */
hpct_stage_folders *hpct_stage_folders_new(int root, bool make, bool follow);
void hpct_stage_folders_free(
    hpct_stage_folders *folders); /* NULL is allowed; no folder may be in use */

/* Opens the folder of the last component of `path` ("" and "a" are in the root). Returns a
 * descriptor to be released with hpct_stage_folders_put, and in *last the last component; -1 with
 * errno.
 */
int hpct_stage_folders_get(hpct_stage_folders *folders, const char *path, const char **last);
void hpct_stage_folders_put(hpct_stage_folders *folders, int fd);

/* Removes `name` in `parent` and everything below, making folders writable. For the user's own
 * files only; follows no link. Sends heartbeats to `report` (may be NULL). */
void hpct_stage_tree_remove(int parent, const char *name, hpct_stage_report *report);

/* The same with a timeout in seconds: false if something is left. */
bool hpct_stage_tree_remove_within(int parent, const char *name, double seconds);

#endif
