/* spank/stage/tree/inodes.h - finds hard links: names of the same inode. */
#ifndef HPCT_SPANK_STAGE_TREE_INODES_H
#define HPCT_SPANK_STAGE_TREE_INODES_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hpct_stage_inodes hpct_stage_inodes;

hpct_stage_inodes *hpct_stage_inodes_new(void);         /* NULL when out of memory */
void hpct_stage_inodes_free(hpct_stage_inodes *inodes); /* NULL is allowed */

/* For a new inode stores *value; for a known one sets *value to the stored value. */
hpct_status hpct_stage_inodes_add(hpct_stage_inodes *inodes, dev_t device, ino_t inode,
                                  size_t *value);

bool hpct_stage_inodes_has(const hpct_stage_inodes *inodes, dev_t device, ino_t inode);

#endif
