/* Folders of pictures: SPLIT/CLASS/FILE, or CLASS/FILE. Symbolic links are followed. */
#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "agent/data/listing.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 3 /* SPLIT, CLASS, FILE */

typedef struct walk {
    hpct_listing *listing; /* NULL: is there any? */
    const char *top;
    bool found;
} walk;

/* Looks into top/below ("" or ending in '/'). What cannot be opened as a folder is none; a picture
 * whose file cannot be read is noticed when it is read. */
static hpct_status look(walk *w, const char *below, int depth)
{
    char *path = NULL;
    hpct_status status = HPCT_OK;
    const struct dirent *entry;
    if (asprintf(&path, "%s/%s", w->top, below) < 0)
        return hpct_fail_memory(0);
    DIR *folder = opendir(path);
    free(path);
    if (folder == NULL)
        return HPCT_OK;
    while (status == HPCT_OK && !(w->found && w->listing == NULL) &&
           (entry = readdir(folder)) != NULL) {
        bool picture = hpct_is_picture_name(entry->d_name);
        char *name = NULL;
        if (entry->d_name[0] == '.' || (!picture && depth == MAX_DEPTH) || (picture && depth == 1))
            continue; /* pictures beside the folders are of no class */
        if (asprintf(&name, "%s%s%s", below, entry->d_name, picture ? "" : "/") < 0) {
            status = hpct_fail_memory(0);
            break;
        }
        w->found = w->found || picture;
        if (!picture)
            status = look(w, name, depth + 1);
        else if (w->listing != NULL)
            status = hpct_listing_add(w->listing, name, 0, 0);
        free(name);
    }
    closedir(folder);
    return status;
}

static bool claims(const char *path, bool is_folder)
{
    walk w = {.top = path};
    return is_folder && look(&w, "", 1) == HPCT_OK && w.found;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_listing listing = {0};
    walk w = {.listing = &listing, .top = path};
    dataset->path = strdup(path);
    hpct_status status = dataset->path != NULL ? look(&w, "", 1) : hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = hpct_listing_choose(&listing, split, path);
    if (status == HPCT_OK)
        status = hpct_encoded_take(dataset, &listing, NULL, 0);
    hpct_listing_free(&listing);
    return status;
}

const hpct_format hpct_format_folder = {
    .name = "folder of pictures",
    .looks_like =
        "a folder with pictures as train/CLASS/x.jpg and test/CLASS/x.jpg, or CLASS/x.png",
    .claims = claims,
    .read = read_split,
};
