/* spank/stage/tree/folders.h - opens folders below a root component by component without following
 * links; recently used ones stay open. Thread-safe. */
#ifndef HPCT_SPANK_STAGE_TREE_FOLDERS_H
#define HPCT_SPANK_STAGE_TREE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_folders hpct_folders;

/* Opens folders below `root`, which the caller keeps open. `make`: create missing folders (mode
 * 0700). `follow`: follow symbolic links in paths. NULL if out of memory. */
hpct_folders *hpct_folders_new(int root, bool make, bool follow);
void hpct_folders_free(hpct_folders *folders); /* NULL is allowed; no folder may be in use */

/* Opens the folder of the last component of `path` ("" and "a" are in the root). Returns a
 * descriptor to be released with hpct_folders_put, and in *last the last component; -1 with errno.
 */
int hpct_folders_get(hpct_folders *folders, const char *path, const char **last);
void hpct_folders_put(hpct_folders *folders, int fd);

#endif
