/* The first names, in the order in which they were found; an inode leads to its place among them.
 */
#include <config.h>

#include "spank/stage/out/out_links.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/stage/tree/inodes.h"

struct hpct_stage_out_links {
    hpct_stage_inodes *inodes;
    char **paths;
    size_t count, room;
};

hpct_stage_out_links *hpct_stage_out_links_new(void)
{
    hpct_stage_out_links *links = calloc(1, sizeof *links);
    if (links == NULL)
        return NULL;
    links->inodes = hpct_stage_inodes_new();
    if (links->inodes == NULL) {
        free(links);
        return NULL;
    }
    return links;
}

void hpct_stage_out_links_free(hpct_stage_out_links *links)
{
    if (links == NULL)
        return;
    for (size_t i = 0; i < links->count; i++)
        free(links->paths[i]);
    free(links->paths);
    hpct_stage_inodes_free(links->inodes);
    free(links);
}

hpct_status hpct_stage_out_links_note(hpct_stage_out_links *links, const struct stat *info,
                                      const char *path, const char **first)
{
    size_t place = links->count;
    *first = NULL;
    if (links->count == links->room) {
        size_t room = links->room == 0 ? 64 : links->room * 2;
        char **paths = realloc(links->paths, room * sizeof *paths);
        if (paths == NULL)
            return hpct_fail_memory(room * sizeof *paths);
        links->paths = paths;
        links->room = room;
    }
    char *copy = strdup(path);
    if (copy == NULL)
        return hpct_fail_memory(0);
    hpct_status status = hpct_stage_inodes_add(links->inodes, info->st_dev, info->st_ino, &place);
    if (status == HPCT_OK && place == links->count) {
        links->paths[links->count++] = copy;
        return HPCT_OK;
    }
    free(copy);
    if (status == HPCT_OK)
        *first = links->paths[place];
    return status;
}
