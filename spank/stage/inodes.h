/* spank/stage/inodes.h - finds the names that belong to one file. */
#ifndef HPCT_STAGE_INODES_H
#define HPCT_STAGE_INODES_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct hpct_inodes hpct_inodes;

hpct_inodes *hpct_inodes_new(void);         /* NULL when out of memory */
void hpct_inodes_free(hpct_inodes *inodes); /* NULL is fine */

/* Keeps *value for a file that is new; sets it to the value kept for one that is known. */
hpct_status hpct_inodes_add(hpct_inodes *inodes, dev_t device, ino_t inode, size_t *value);

#endif
