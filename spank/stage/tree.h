/* spank/stage/tree.h - files and folders as a whole: how large, the same as, copied to. The source
 * is walked through descriptors and no link in it is followed: links within the tree are kept as
 * they are, links out of it are refused. */
#ifndef HPCT_STAGE_TREE_H
#define HPCT_STAGE_TREE_H

#include <sys/stat.h>

#include "spank/stage/report.h"

typedef struct hpct_tree_size {
    uint64_t bytes;   /* of content */
    uint64_t blocks;  /* bytes on a disk with 4 KiB blocks */
    uint64_t entries; /* files, folders, links */
} hpct_tree_size;

/* Everything below the open file or folder `src`; `name` is its name in messages. Ends with an
 * error where copying would: HPCT_ERR_NO_INPUT for what cannot be read, HPCT_ERR_DATA for links out
 * of the tree and for devices, sockets and pipes. */
hpct_status hpct_tree_measure(int src, const char *name, hpct_report *report, hpct_tree_size *size);

/* Whether `dst` in the folder `parent` has the same entries as `src`: kinds, names, sizes,
 * modification times, link targets. False when it is not there. */
bool hpct_tree_same(int src, int parent, const char *dst, hpct_report *report);

/* Copies `src` to the new name `dst` in the folder `parent`, with modes and times. */
hpct_status hpct_tree_copy(int src, const char *name, int parent, const char *dst,
                           hpct_report *report);

/* Removes `name` in `parent` and all below it, making folders writable on the way. The user's own
 * files only; no link is followed. */
void hpct_tree_remove(int parent, const char *name);

#endif
