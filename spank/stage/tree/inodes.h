/* spank/stage/tree/inodes.h - finds hard links: names of the same inode. A set is a `void *`, NULL
 * when empty. */
#ifndef HPCT_SPANK_STAGE_TREE_INODES_H
#define HPCT_SPANK_STAGE_TREE_INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef struct hpct_stage_inode {
    dev_t device;
    ino_t inode;
    size_t number;
    char name[];
} hpct_stage_inode;

/* The known inode, or a new one with this number and name. NULL if out of memory. */
const hpct_stage_inode *hpct_stage_inodes_add(void **inodes, const struct stat *info, size_t number,
                                              const char *name);
bool hpct_stage_inodes_has(void *const *inodes, const struct stat *info);
void hpct_stage_inodes_free(void **inodes);

#endif
