/* A tree of glibc's. */
#include <config.h>

#include "spank/stage/tree/inodes.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const hpct_stage_inode *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

const hpct_stage_inode *hpct_stage_inodes_add(void **inodes, const struct stat *info, size_t number,
                                              const char *name)
{
    const size_t size = strlen(name) + 1;
    hpct_stage_inode *own = malloc(sizeof *own + size);
    if (own == NULL)
        return NULL;
    *own = (hpct_stage_inode){.device = info->st_dev, .inode = info->st_ino, .number = number};
    memcpy(own->name, name, size);
    hpct_stage_inode *const *found = tsearch(own, inodes, compare);
    const hpct_stage_inode *known = found == NULL ? NULL : *found;
    if (known != own)
        free(own);
    return known;
}

bool hpct_stage_inodes_has(void *const *inodes, const struct stat *info)
{
    const hpct_stage_inode wanted = {.device = info->st_dev, .inode = info->st_ino};
    return tfind(&wanted, inodes, compare) != NULL;
}

void hpct_stage_inodes_free(void **inodes)
{
    tdestroy(*inodes, free);
    *inodes = NULL;
}
