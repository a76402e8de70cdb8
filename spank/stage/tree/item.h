/* spank/stage/tree/item.h - an entry of a tree, as listed, sent and written. Holds no descriptors
 * and owns no memory. */
#ifndef HPCT_SPANK_STAGE_TREE_ITEM_H
#define HPCT_SPANK_STAGE_TREE_ITEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define HPCT_STAGE_ITEM_DEPTH 256 /* maximal number of components of a path */

typedef enum hpct_stage_item_kind {
    HPCT_STAGE_ITEM_FILE,
    HPCT_STAGE_ITEM_FOLDER,
    HPCT_STAGE_ITEM_SYMLINK,
    HPCT_STAGE_ITEM_HARDLINK, /* hard link to an earlier file */
} hpct_stage_item_kind;

typedef struct hpct_stage_item {
    hpct_stage_item_kind kind;
    const char *path;   /* below the root: components separated by one '/'; "" is the root */
    const char *target; /* symlink: its text; hard link: path of the earlier file; else NULL */
    uint64_t size;      /* file: bytes including holes; else 0 */
    mode_t mode;        /* permission bits only */
    struct timespec times[2]; /* access and modification, as for futimens */
} hpct_stage_item;

#endif
