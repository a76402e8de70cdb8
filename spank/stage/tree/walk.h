/* spank/stage/tree/walk.h - listing of a source: every item of a tree (or the file) in a stable
 * order, with what is needed to read the files and to detect changes.
 *
 * The order depends on names only, compared as bytes; a folder comes before its contents. Of
 * several names of one file the first is a file and the others are hard links to it. Links are not
 * followed unless options say so: links within the tree are kept, links that leave it are errors.
 *
 * An item takes some hundred bytes. Read-only after hpct_stage_walk_open; several threads may read
 * it and its files.
 *
 * Errors: HPCT_ERR_NO_INPUT for unreadable items, HPCT_ERR_DATA for links that leave the tree,
 * devices, sockets and pipes, HPCT_ERR_IO for changes since listing, HPCT_ERR_STOPPED; messages
 * name the file as `name`/path. */
#ifndef HPCT_SPANK_STAGE_TREE_WALK_H
#define HPCT_SPANK_STAGE_TREE_WALK_H

#include <limits.h>
#include <stddef.h>

#include "spank/stage/tree/item.h"
#include "spank/stage/tree/report.h"

typedef struct hpct_stage_walk hpct_stage_walk;

typedef struct hpct_stage_walk_options {
    bool follow; /* follow links that leave the tree; false: they are errors */
    /* Called for each followed link with its target opened (O_PATH); NULL: all are allowed. An
     * error sets the message. */
    hpct_status (*allowed)(void *context, int fd, const char *name);
    void *context;
} hpct_stage_walk_options;

typedef struct hpct_stage_walk_totals {
    uint64_t bytes;   /* of content without holes */
    uint64_t blocks;  /* bytes on a disk with 4 KiB blocks */
    uint64_t entries; /* files, folders, links */
} hpct_stage_walk_totals;

/* Lists the open file or folder `src`, which the caller keeps open. `name` is for messages. */
hpct_status hpct_stage_walk_open(hpct_stage_walk **walk, int src, const char *name,
                                 const hpct_stage_walk_options *options, hpct_stage_report *report);
void hpct_stage_walk_close(hpct_stage_walk *walk); /* NULL is allowed */

hpct_stage_walk_totals hpct_stage_walk_sum(const hpct_stage_walk *walk);

/* Items 0 to count - 1; item 0 is the root. */
size_t hpct_stage_walk_count(const hpct_stage_walk *walk);

/* Describes an item. `path` and `target` are buffers of PATH_MAX bytes for item->path and
 * item->target. `target` may be NULL if only files and folders matter, `path` too if only kind,
 * size and so on do. */
void hpct_stage_walk_item(const hpct_stage_walk *walk, size_t index, hpct_stage_item *item,
                          char *path, char *target);

/* Change time (ctime) of the inode, which programs cannot set. */
struct timespec hpct_stage_walk_changed(const hpct_stage_walk *walk, size_t index);

/* Digest of the listing: names, kinds, sizes, modes, modification times, inode numbers, link texts.
 * Equal if nothing changed between two listings. */
uint64_t hpct_stage_walk_digest(const hpct_stage_walk *walk);

/* Opens a file for hpct_stage_walk_read; the caller closes it with close(). An error if it is not
 * the listed file, or has another size or modification time. */
hpct_status hpct_stage_walk_file(hpct_stage_walk *walk, size_t index, int *fd);

/* Reads exactly `size` bytes at `at`. Thread-safe. */
hpct_status hpct_stage_walk_read(hpct_stage_walk *walk, size_t index, int fd, void *data,
                                 size_t size, uint64_t at);

/* Whether a hole or data begins at `at` (below the file's size), up to *end. */
hpct_status hpct_stage_walk_extent(hpct_stage_walk *walk, size_t index, int fd, uint64_t at,
                                   uint64_t *end, bool *hole);

/* After the last read: an error if the file changed since listing. */
hpct_status hpct_stage_walk_unchanged(hpct_stage_walk *walk, size_t index, int fd);

/* The four calls above for a file that fits into `data`. */
hpct_status hpct_stage_walk_whole(hpct_stage_walk *walk, size_t index, void *data);

#endif
