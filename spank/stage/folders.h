/* spank/stage/folders.h - opening folders below a root by their path, part by part, following no
 * link; the ones used last are kept open. Several threads may use one at once. */
#ifndef HPCT_STAGE_FOLDERS_H
#define HPCT_STAGE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_folders hpct_folders;

/* Below the open folder `root`, which stays the caller's and must stay open. `make`: what is
 * missing is made (mode 0700). `follow`: symbolic links in the path are followed (a source whose
 * links are to be). NULL when out of memory. */
hpct_folders *hpct_folders_new(int root, bool make, bool follow);
void hpct_folders_free(hpct_folders *folders); /* NULL is fine; nothing may be in use */

/* Opens the folder that holds the last part of `path` (so "" and "a" are in the root). Returns a
 * descriptor to be given back with hpct_folders_put, and in *last where the last part begins; -1
 * with errno set. */
int hpct_folders_get(hpct_folders *folders, const char *path, const char **last);
void hpct_folders_put(hpct_folders *folders, int fd);

#endif
