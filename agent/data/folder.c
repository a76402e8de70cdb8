/* Folders of pictures: SPLIT/CLASS/FILE, or CLASS/FILE (agent/data/listing.h). Follows symbolic
 * links. */
#include "agent/data/folder.h"

#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "agent/data/listing.h"
#include "agent/data/unlabelled.h"
#include "base/alloc.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 32

/* A folder on the path to the current one. */
typedef struct place {
    const struct place *above;
    dev_t device;
    ino_t number;
    int depth;
} place;

typedef struct walk {
    hpct_data_listing *listing; /* NULL: only search for a picture */
    const char *top;
    bool found, deeper; /* deeper: a picture in a subfolder */
} walk;

static hpct_status read_folder(walk *w, const char *below, const place *above);

static bool is_done(const walk *w)
{
    return w->listing == NULL && w->deeper;
}

/* Whether an entry is, or links to, a folder. A dangling link is an error: it may have been a
 * class. */
static hpct_status find_kind(int folder, const struct dirent *entry, const char *path, bool *is)
{
    struct stat info;
    *is = entry->d_type == DT_DIR;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return HPCT_OK;
    if (fstatat(folder, entry->d_name, &info, 0) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s/%s: %s", path, entry->d_name, strerror(errno));
    *is = S_ISDIR(info.st_mode);
    return HPCT_OK;
}

static bool begins_as_picture(int folder, const char *name)
{
    uint8_t bytes[HPCT_DATA_PICTURE_MAGIC];
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, bytes, sizeof bytes);
    close(fd);
    return got > 0 && hpct_data_picture_begins(bytes, (size_t) got);
}

/* `file` is the last component of `name`, within `folder`. */
static hpct_status take_file(walk *w, int folder, const char *file, const char *name)
{
    hpct_data_named named = hpct_data_picture_named(name);
    if (named == HPCT_DATA_NAMED_UNKNOWN)
        named = w->listing != NULL && begins_as_picture(folder, file) ? HPCT_DATA_NAMED_OTHER
                                                                      : HPCT_DATA_NAMED_NOTHING;
    w->found = w->found || named != HPCT_DATA_NAMED_NOTHING;
    w->deeper = w->deeper || (named != HPCT_DATA_NAMED_NOTHING && strchr(name, '/') != NULL);
    if (w->listing == NULL || named == HPCT_DATA_NAMED_NOTHING)
        return HPCT_OK;
    return named == HPCT_DATA_NAMED_PICTURE ? hpct_data_listing_add(w->listing, name, 0, 0)
                                            : hpct_data_listing_add_other(w->listing, name);
}

static hpct_status take_entry(walk *w, int folder, const struct dirent *entry, const char *path,
                              const char *below, const place *here)
{
    bool is_folder = false;
    char *name = NULL;
    hpct_status status = HPCT_OK;
    HPCT_TRY(find_kind(folder, entry, path, &is_folder));
    HPCT_TRY(hpct_alloc_text(&name, "%s%s%s", below, entry->d_name, is_folder ? "/" : ""));
    if (!is_folder)
        status = take_file(w, folder, entry->d_name, name);
    else if (w->listing != NULL)
        status = hpct_data_listing_add(w->listing, name, 0, 0);
    if (is_folder && status == HPCT_OK)
        status = read_folder(w, name, here);
    free(name);
    return status;
}

/* Detects cycles by symbolic links. */
static hpct_status enter(int folder, const char *path, const place *above, place *here)
{
    struct stat info;
    if (fstat(folder, &info) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", path, strerror(errno));
    *here = (place){above, info.st_dev, info.st_ino, above != NULL ? above->depth + 1 : 1};
    for (const place *p = above; p != NULL; p = p->above) {
        if (p->device == here->device && p->number == here->number)
            return hpct_fail(HPCT_ERR_DATA, "%s: it is a link to a folder that it lies in", path);
    }
    if (here->depth > MAX_DEPTH)
        return hpct_fail(HPCT_ERR_DATA, "%s: its folders lie more than %d deep", path, MAX_DEPTH);
    return HPCT_OK;
}

/* Lists top/below ("" or ending in '/'). An unreadable folder is an error here, as it may be a
 * class; an unreadable file when it is read. */
static hpct_status read_folder(walk *w, const char *below, const place *above)
{
    char *path = NULL;
    const struct dirent *entry;
    place here;
    HPCT_TRY(hpct_alloc_text(&path, "%s%s%.*s", w->top, below[0] != '\0' ? "/" : "",
                             (int) (strlen(below) - (below[0] != '\0')), below));
    DIR *folder = opendir(path);
    hpct_status status = folder == NULL
                             ? hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno))
                             : enter(dirfd(folder), path, above, &here);
    while (status == HPCT_OK && !is_done(w)) {
        errno = 0;
        entry = readdir(folder);
        if (entry == NULL && errno != 0)
            status = hpct_fail(HPCT_ERR_IO, "%s: reading failed: %s", path, strerror(errno));
        if (entry == NULL)
            break;
        if (!hpct_data_is_hidden(entry->d_name))
            status = take_entry(w, dirfd(folder), entry, path, below, &here);
    }
    if (folder != NULL)
        closedir(folder);
    free(path);
    return status;
}

/* True for an unreadable folder, so that its error is reported. */
bool hpct_data_folder_has_pictures(const char *path)
{
    walk w = {.top = path};
    return read_folder(&w, "", NULL) != HPCT_OK || w.deeper;
}

static bool claims(const char *path, bool is_folder)
{
    walk w = {.top = path};
    if (!is_folder)
        return hpct_data_picture_named(path) == HPCT_DATA_NAMED_PICTURE;
    return read_folder(&w, "", NULL) != HPCT_OK || w.found;
}

/* Lists one picture, and cuts dataset->path to its folder. */
static hpct_status list_one(hpct_dataset *dataset, hpct_data_listing *listing)
{
    char *slash = strrchr(dataset->path, '/');
    const char *name = slash != NULL ? slash + 1 : dataset->path;
    HPCT_TRY(hpct_data_listing_add(listing, name, 0, 0));
    if (slash == NULL)
        strcpy(dataset->path, "."); /* a picture's name is longer */
    else
        slash[slash == dataset->path] = '\0';
    return HPCT_OK;
}

static hpct_status list(hpct_dataset *dataset, hpct_data_listing *listing, const char *path)
{
    struct stat info;
    walk w = {.listing = listing, .top = path};
    dataset->path = strdup(path);
    if (dataset->path == NULL)
        return hpct_fail_memory(0);
    if (stat(path, &info) != 0 || S_ISDIR(info.st_mode))
        return read_folder(&w, "", NULL);
    if (!dataset->options.unlabelled)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s is one picture, and a data set is a folder of them: %s", path,
                         hpct_data_format_folder.looks_like);
    return list_one(dataset, listing);
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_data_listing listing = {0};
    hpct_status status = list(dataset, &listing, path);
    if (status == HPCT_OK)
        status = dataset->options.unlabelled ? hpct_data_unlabelled_choose(&listing, split, path)
                                             : hpct_data_listing_choose(&listing, split, path);
    dataset->lacking = listing.lacking;
    if (status == HPCT_OK)
        status = hpct_data_encoded_take(dataset, &listing, NULL, 0);
    hpct_data_listing_free(&listing);
    return status;
}

const hpct_data_format hpct_data_format_folder = {
    .name = "folder of pictures",
    .looks_like =
        "a folder with pictures as train/CLASS/x.jpg and test/CLASS/x.jpg, or CLASS/x.png",
    .has_validation = true,
    .by_class = true,
    .claims = claims,
    .read = read_split,
};
