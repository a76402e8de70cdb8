/* spank/stage/walk.h - a source listed once: every item of a tree (or the one file) in a stable
 * order, with what is needed to read the files and to notice that they changed since.
 *
 * The order depends on names alone: names are compared as bytes, and a folder comes before what is
 * in it. Of a file with several names in the tree the first is a file and the others hard links to
 * it. No link is followed unless options say so: links that stay within the tree are kept as they
 * are, links out of it are refused.
 *
 * A listing takes some hundred bytes an item. After hpct_walk_open it is not changed, and several
 * threads may read it and its files at once.
 *
 * Errors: HPCT_ERR_NO_INPUT for what cannot be read, HPCT_ERR_DATA for links out of the tree and
 * for devices, sockets and pipes, HPCT_ERR_IO for what changed since it was listed,
 * HPCT_ERR_STOPPED; messages name the file as `name`/path. */
#ifndef HPCT_STAGE_WALK_H
#define HPCT_STAGE_WALK_H

#include <limits.h>
#include <stddef.h>

#include "spank/stage/item.h"
#include "spank/stage/report.h"

typedef struct hpct_walk hpct_walk;

typedef struct hpct_walk_options {
    bool follow; /* a link out of the tree stands for what it leads to, instead of being refused */
    /* Asked for each link that is followed, with what it leads to, opened (O_PATH); NULL: all may
     * be. A refusal sets the message. */
    hpct_status (*allowed)(void *context, int fd, const char *name);
    void *context;
} hpct_walk_options;

typedef struct hpct_walk_totals {
    uint64_t bytes;   /* of content, holes not counted */
    uint64_t blocks;  /* bytes on a disk with 4 KiB blocks */
    uint64_t entries; /* files, folders, links */
} hpct_walk_totals;

/* Lists what lies below the open file or folder `src`, which is the caller's and stays open.
 * `name`: how messages name it. */
hpct_status hpct_walk_open(hpct_walk **walk, int src, const char *name,
                           const hpct_walk_options *options, hpct_report *report);
void hpct_walk_close(hpct_walk *walk); /* NULL is fine */

hpct_walk_totals hpct_walk_sum(const hpct_walk *walk);

/* Items 0 to count - 1; item 0 is the root. */
size_t hpct_walk_count(const hpct_walk *walk);

/* Describes an item; item->path and item->target lie in `path` and `target`, the caller's buffers
 * of PATH_MAX bytes. `target` may be NULL where only files and folders are of interest, `path` too
 * where only kind, size and so on are. */
void hpct_walk_item(const hpct_walk *walk, size_t index, hpct_item *item, char *path, char *target);

/* When the inode was last changed in any way, which no program can set. */
struct timespec hpct_walk_changed(const hpct_walk *walk, size_t index);

/* Stands for the whole listing: names, kinds, sizes, modes, modification times, inode numbers and
 * link texts. Equal when nothing was changed between two listings. */
uint64_t hpct_walk_digest(const hpct_walk *walk);

/* Opens a file for reading with hpct_walk_read; closed with close. An error when it is not the file
 * that was listed, or has another size or modification time. */
hpct_status hpct_walk_file(hpct_walk *walk, size_t index, int *fd);

/* Reads exactly `size` bytes at `at`; several threads may, from one descriptor. */
hpct_status hpct_walk_read(hpct_walk *walk, size_t index, int fd, void *data, size_t size,
                           uint64_t at);

/* What lies at `at` (less than the file's size): a hole or data, up to *end. */
hpct_status hpct_walk_extent(hpct_walk *walk, size_t index, int fd, uint64_t at, uint64_t *end,
                             bool *hole);

/* After the last read: an error when the file was changed since it was listed. */
hpct_status hpct_walk_unchanged(hpct_walk *walk, size_t index, int fd);

/* All four at once for a file that fits: its item's size bytes go to `data`. */
hpct_status hpct_walk_whole(hpct_walk *walk, size_t index, void *data);

#endif
