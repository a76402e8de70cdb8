/* Lists a tree, and opens the listed files. */
#include <config.h>

#include "spank/stage/tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/arena.h"
#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/inodes.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC)
#define HOLES_FROM (1 << 20) /* smaller files are taken as having no holes */

typedef struct node {
    const char *name;   /* last component of the path */
    const char *target; /* symlink: its text */
    uint64_t size, inode;
    uint64_t device;
    struct timespec times[2], changed;
    uint32_t parent, first; /* hard link: index of the earlier file */
    uint16_t mode;
    uint8_t kind;
    bool holes;
    bool followed; /* folder reached through a followed link */
} node;

struct hpct_stage_walk {
    hpct_stage_walk_options options;
    char *name;
    int src;
    bool is_folder;
    hpct_stage_folders *folders;
    hpct_stage_arena *arena;
    node *nodes;
    size_t count, room;
    hpct_stage_walk_totals totals;
    void *inodes;              /* those with several names; used while listing */
    hpct_stage_report *report; /* used while listing */
};

/* ---- messages ---- */

static void path_below(const hpct_stage_walk *w, size_t top, size_t index, char path[PATH_MAX])
{
    size_t end = PATH_MAX - 1;
    path[end] = '\0';
    for (size_t i = index; i != top; i = w->nodes[i].parent) {
        size_t size = strlen(w->nodes[i].name);
        if (end != PATH_MAX - 1)
            path[--end] = '/';
        end -= size;
        memcpy(path + end, w->nodes[i].name, size);
    }
    memmove(path, path + end, PATH_MAX - end);
}

static void path_of(const hpct_stage_walk *w, size_t index, char path[PATH_MAX])
{
    path_below(w, 0, index, path);
}

/* `what` directly follows the name. */
static hpct_status fail_about(const hpct_stage_walk *w, size_t index, hpct_status status,
                              const char *what)
{
    char path[PATH_MAX];
    path_of(w, index, path);
    return hpct_fail(status, "%s%s%s%s", w->name, *path == '\0' ? "" : "/", path, what);
}

static hpct_status fail_read(const hpct_stage_walk *w, size_t index)
{
    char what[256];
    snprintf(what, sizeof what, " cannot be read: %s", strerror(errno));
    return fail_about(w, index, HPCT_ERR_NO_INPUT, what);
}

static hpct_status fail_changed(const hpct_stage_walk *w, size_t index)
{
    return fail_about(w, index, HPCT_ERR_IO, " changed while it was copied");
}

/* ---- listing ---- */

static hpct_status add_node(hpct_stage_walk *w, size_t parent, const char *name, size_t *index)
{
    if (w->count == w->room) {
        size_t room = w->room * 2 + 64;
        node *nodes = room > UINT32_MAX ? NULL : realloc(w->nodes, room * sizeof *nodes);
        if (nodes == NULL)
            return hpct_fail_memory(room * sizeof *nodes);
        w->nodes = nodes;
        w->room = room;
    }
    *index = w->count++;
    w->nodes[*index] = (node){.name = name, .parent = (uint32_t) parent};
    return HPCT_OK;
}

static void describe(node *n, const struct stat *info)
{
    n->mode = (uint16_t) (info->st_mode & 0777);
    n->times[0] = info->st_atim;
    n->times[1] = info->st_mtim;
    n->changed = info->st_ctim;
    n->inode = (uint64_t) info->st_ino;
    n->device = (uint64_t) info->st_dev;
}

static uint64_t in_blocks(uint64_t bytes)
{
    return (bytes + 4095) & ~UINT64_C(4095);
}

/* Counts the bytes of a file outside holes. */
static hpct_status count_data(hpct_stage_walk *w, size_t index, int fd, uint64_t *bytes)
{
    uint64_t size = w->nodes[index].size;
    *bytes = 0;
    for (uint64_t at = 0, end = 0; at < size; at = end) {
        bool hole = false;
        HPCT_TRY(hpct_stage_walk_extent(w, index, fd, at, &end, &hole));
        if (!hole)
            *bytes += end - at;
        w->nodes[index].holes |= hole;
    }
    return HPCT_OK;
}

/* `fd`: the open folder, with `name` in it; or with name NULL the file itself. */
static hpct_status add_file(hpct_stage_walk *w, size_t index, int fd, const char *name,
                            const struct stat *info)
{
    node *n = &w->nodes[index];
    uint64_t bytes = (uint64_t) info->st_size;
    bool maybe_holes = bytes >= HOLES_FROM && (uint64_t) info->st_blocks * 512 < bytes;
    n->kind = HPCT_STAGE_ITEM_FILE;
    n->size = bytes;
    if (info->st_nlink > 1 && name != NULL) {
        const hpct_stage_inode *first = hpct_stage_inodes_add(&w->inodes, info, index, "");
        if (first == NULL)
            return hpct_fail_memory(0);
        if (first->number != index) {
            n->kind = HPCT_STAGE_ITEM_HARDLINK;
            n->first = (uint32_t) first->number;
            n->size = 0;
            w->totals.entries++;
            return HPCT_OK;
        }
    }
    /* checked before anything is copied; no system call for files that all may read */
    if (name != NULL && (info->st_mode & 0444) != 0444 &&
        faccessat(fd, name, R_OK, AT_EACCESS) != 0)
        return fail_read(w, index);
    if (maybe_holes) {
        int file = name == NULL ? fd : openat(fd, name, FILE_FLAGS);
        if (file < 0)
            return fail_read(w, index);
        n->holes = true; /* hpct_stage_walk_extent looks for them */
        hpct_status status = count_data(w, index, file, &bytes);
        if (file != fd)
            close(file);
        if (status != HPCT_OK)
            return status;
    }
    w->totals.bytes += bytes;
    w->totals.blocks += in_blocks(bytes);
    w->totals.entries++;
    return HPCT_OK;
}

/* *follow: the link leaves the tree and is replaced by its target. (add_link and follow_link are
 * not inlined: their buffers would be on the stack once for each level of folders.) */
__attribute__((noinline)) static hpct_status add_link(hpct_stage_walk *w, size_t index, int fd,
                                                      const char *name, bool *follow)
{
    char text[PATH_MAX], path[PATH_MAX], what[PATH_MAX + 256];
    ssize_t size = readlinkat(fd, name, text, sizeof text - 1);
    if (size < 0)
        return fail_read(w, index);
    text[size] = '\0';
    /* Below a followed link, ".." is relative to that folder, not to the root of the walk. */
    size_t top = index;
    do
        top = w->nodes[top].parent;
    while (top != 0 && !w->nodes[top].followed);
    path_below(w, top, index, path);
    *follow = false;
    if (!hpct_stage_item_link_stays(path, text)) {
        *follow = w->options.follow;
        if (*follow)
            return HPCT_OK;
        snprintf(what, sizeof what,
                 " is a link to '%s', out of the folder that is staged: replace it by what it "
                 "leads to, stage that by itself, or have links followed",
                 text);
        return fail_about(w, index, HPCT_ERR_DATA, what);
    }
    w->nodes[index].kind = HPCT_STAGE_ITEM_SYMLINK;
    w->nodes[index].target = hpct_stage_arena_keep(w->arena, text, (size_t) size);
    if (w->nodes[index].target == NULL)
        return hpct_fail_memory(0);
    w->totals.blocks += 4096;
    w->totals.entries++;
    return HPCT_OK;
}

/* Opens the target of a followed link. An ancestor folder is an error: the walk would not end. */
__attribute__((noinline)) static hpct_status follow_link(hpct_stage_walk *w, size_t index, int fd,
                                                         const char *name, struct stat *info)
{
    char path[PATH_MAX], full[2 * PATH_MAX];
    hpct_status status = HPCT_OK;
    int target = openat(fd, name, O_PATH | O_CLOEXEC);
    if (target < 0 || fstat(target, info) != 0)
        status = fail_read(w, index);
    path_of(w, index, path);
    snprintf(full, sizeof full, "%s/%s", w->name, path);
    if (status == HPCT_OK && w->options.allowed != NULL)
        status = w->options.allowed(w->options.context, target, full);
    hpct_fd_close(target);
    for (size_t i = index; status == HPCT_OK && S_ISDIR(info->st_mode) && i != 0;) {
        i = w->nodes[i].parent;
        if (w->nodes[i].inode == (uint64_t) info->st_ino &&
            w->nodes[i].device == (uint64_t) info->st_dev)
            status = fail_about(w, index, HPCT_ERR_DATA,
                                " is a link to a folder that it lies in: it cannot be followed");
    }
    return status;
}

static hpct_status list_folder(hpct_stage_walk *w, size_t index, int fd, int depth);

static hpct_status add_entry(hpct_stage_walk *w, size_t parent, int fd, const char *name, int depth)
{
    struct stat info;
    size_t index = 0;
    bool follow = false;
    HPCT_TRY(add_node(w, parent, name, &index));
    hpct_status status = HPCT_OK;
    if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_read(w, index);
    if (S_ISLNK(info.st_mode)) {
        describe(&w->nodes[index], &info);
        status = add_link(w, index, fd, name, &follow);
        if (status != HPCT_OK || !follow)
            return status;
        status = follow_link(w, index, fd, name, &info);
        if (status != HPCT_OK)
            return status;
    }
    describe(&w->nodes[index], &info);
    if (S_ISREG(info.st_mode))
        return add_file(w, index, fd, name, &info);
    if (!S_ISDIR(info.st_mode))
        return fail_about(w, index, HPCT_ERR_DATA, " is neither a file nor a folder nor a link");
    int inner = openat(fd, name, FOLDER_FLAGS | (follow ? 0 : O_NOFOLLOW));
    if (inner < 0)
        return fail_read(w, index);
    w->nodes[index].followed = follow;
    status = list_folder(w, index, inner, depth + 1);
    close(inner);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static hpct_status read_names(hpct_stage_walk *w, size_t index, DIR *folder, const char ***out,
                              size_t *count)
{
    size_t room = 0;
    for (;;) {
        errno = 0;
        struct dirent *found = readdir(folder);
        if (found == NULL)
            return errno == 0 ? HPCT_OK : fail_read(w, index);
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        if (*count == room) {
            room = room * 2 + 64;
            const char **names = realloc(*out, room * sizeof *names);
            if (names == NULL)
                return hpct_fail_memory(room * sizeof *names);
            *out = names;
        }
        const char *name = hpct_stage_arena_keep(w->arena, found->d_name, strlen(found->d_name));
        if (name == NULL)
            return hpct_fail_memory(0);
        (*out)[(*count)++] = name;
    }
}

/* Whether the path of this item would exceed PATH_MAX. */
static bool too_long(const hpct_stage_walk *w, size_t index, const char *name)
{
    size_t size = strlen(name) + 1;
    for (size_t i = index; i != 0; i = w->nodes[i].parent)
        size += strlen(w->nodes[i].name) + 1;
    return size > PATH_MAX;
}

static hpct_status list_folder(hpct_stage_walk *w, size_t index, int fd, int depth)
{
    const char **names = NULL;
    size_t count = 0;
    w->nodes[index].kind = HPCT_STAGE_ITEM_FOLDER;
    w->totals.entries++;
    w->totals.blocks += 4096;
    if (depth > HPCT_STAGE_ITEM_DEPTH - 1)
        return fail_about(w, index, HPCT_ERR_DATA, ": folders are nested too deep");
    DIR *folder = hpct_fd_list(fd);
    if (folder == NULL)
        return fail_read(w, index);
    hpct_status status = read_names(w, index, folder, &names, &count);
    closedir(folder);
    if (status == HPCT_OK && count > 0)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count && status == HPCT_OK; i++) {
        status = hpct_stage_report_tick(w->report, 0);
        if (status == HPCT_OK && too_long(w, index, names[i]))
            status = fail_about(w, index, HPCT_ERR_DATA, ": a path in it is too long");
        if (status == HPCT_OK)
            status = add_entry(w, index, fd, names[i], depth);
    }
    free(names);
    return status;
}

static hpct_status list_root(hpct_stage_walk *w)
{
    struct stat info;
    size_t index = 0;
    HPCT_TRY(add_node(w, 0, "", &index));
    if (fstat(w->src, &info) != 0)
        return fail_read(w, 0);
    describe(&w->nodes[0], &info);
    w->is_folder = S_ISDIR(info.st_mode);
    if (w->is_folder)
        return list_folder(w, 0, w->src, 0);
    if (!S_ISREG(info.st_mode))
        return fail_about(w, 0, HPCT_ERR_DATA, " is neither a file nor a folder nor a link");
    return add_file(w, 0, w->src, NULL, &info);
}

hpct_status hpct_stage_walk_open(hpct_stage_walk **out, int src, const char *name,
                                 const hpct_stage_walk_options *options, hpct_stage_report *report)
{
    hpct_stage_walk *w = calloc(1, sizeof *w);
    hpct_status status = HPCT_OK;
    if (w == NULL)
        return hpct_fail_memory(sizeof *w);
    w->options = *options;
    w->src = src;
    w->report = report;
    w->name = strdup(name);
    w->folders = hpct_stage_folders_new(src, false, options->follow);
    w->arena = hpct_stage_arena_new();
    if (w->name == NULL || w->folders == NULL || w->arena == NULL)
        status = hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = list_root(w);
    hpct_stage_inodes_free(&w->inodes);
    if (status != HPCT_OK) {
        hpct_stage_walk_close(w);
        return status;
    }
    *out = w;
    return HPCT_OK;
}

void hpct_stage_walk_close(hpct_stage_walk *w)
{
    if (w == NULL)
        return;
    hpct_stage_folders_free(w->folders);
    hpct_stage_arena_free(w->arena);
    free(w->nodes);
    free(w->name);
    free(w);
}

/* ---- what was listed ---- */

hpct_stage_walk_totals hpct_stage_walk_sum(const hpct_stage_walk *w)
{
    return w->totals;
}

size_t hpct_stage_walk_count(const hpct_stage_walk *w)
{
    return w->count;
}

void hpct_stage_walk_item(const hpct_stage_walk *w, size_t index, hpct_stage_item *item, char *path,
                          char *target)
{
    const node *n = &w->nodes[index];
    if (path != NULL)
        path_of(w, index, path);
    *item = (hpct_stage_item){.kind = (hpct_stage_item_kind) n->kind,
                              .path = path,
                              .size = n->size,
                              .mode = n->mode,
                              .times = {n->times[0], n->times[1]}};
    if (target == NULL)
        return;
    if (n->kind == HPCT_STAGE_ITEM_SYMLINK)
        memcpy(target, n->target, strlen(n->target) + 1);
    else if (n->kind == HPCT_STAGE_ITEM_HARDLINK)
        path_of(w, n->first, target);
    else
        return;
    item->target = target;
}

struct timespec hpct_stage_walk_changed(const hpct_stage_walk *w, size_t index)
{
    return w->nodes[index].changed;
}

uint64_t hpct_stage_walk_digest(const hpct_stage_walk *w)
{
    hpct_stage_hasher *hasher = hpct_stage_hasher_new();
    if (hasher == NULL)
        return 0; /* equals another digest only by chance */
    for (size_t i = 0; i < w->count; i++) {
        const node *n = &w->nodes[i];
        const uint64_t numbers[] = {n->parent,
                                    n->first,
                                    n->kind,
                                    n->mode,
                                    n->size,
                                    n->inode,
                                    (uint64_t) n->times[1].tv_sec,
                                    (uint64_t) n->times[1].tv_nsec};
        hpct_stage_hasher_add(hasher, numbers, sizeof numbers);
        hpct_stage_hasher_add(hasher, n->name, strlen(n->name) + 1);
        if (n->target != NULL)
            hpct_stage_hasher_add(hasher, n->target, strlen(n->target) + 1);
    }
    uint64_t digest = hpct_stage_hasher_end(hasher);
    hpct_stage_hasher_free(hasher);
    return digest;
}

/* ---- reading ---- */

static bool is_same(const node *n, const struct stat *info)
{
    return S_ISREG(info->st_mode) && (uint64_t) info->st_size == n->size &&
           (uint64_t) info->st_ino == n->inode && info->st_mtim.tv_sec == n->times[1].tv_sec &&
           info->st_mtim.tv_nsec == n->times[1].tv_nsec;
}

hpct_status hpct_stage_walk_unchanged(hpct_stage_walk *w, size_t index, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail_read(w, index);
    return is_same(&w->nodes[index], &info) ? HPCT_OK : fail_changed(w, index);
}

static hpct_status open_file(hpct_stage_walk *w, size_t index, int *fd)
{
    char path[PATH_MAX];
    const char *last = NULL;
    *fd = -1;
    if (!w->is_folder) {
        *fd = fcntl(w->src, F_DUPFD_CLOEXEC, 0);
    } else {
        path_of(w, index, path);
        int folder = hpct_stage_folders_get(w->folders, path, &last);
        if (folder >= 0) {
            *fd = openat(folder, last, FILE_FLAGS | (w->options.follow ? 0 : O_NOFOLLOW));
            int kept = errno;
            hpct_stage_folders_put(w->folders, folder);
            errno = kept;
        }
    }
    return *fd < 0 ? fail_read(w, index) : HPCT_OK;
}

hpct_status hpct_stage_walk_file(hpct_stage_walk *w, size_t index, int *fd)
{
    hpct_status status = open_file(w, index, fd);
    if (status == HPCT_OK)
        status = hpct_stage_walk_unchanged(w, index, *fd);
    if (status != HPCT_OK) {
        hpct_fd_close(*fd);
        *fd = -1;
    }
    return status;
}

hpct_status hpct_stage_walk_read(hpct_stage_walk *w, size_t index, int fd, void *data, size_t size,
                                 uint64_t at)
{
    ssize_t got = hpct_fd_read_at(fd, data, size, (off_t) at);
    if (got < 0)
        return fail_read(w, index);
    return (size_t) got == size
               ? HPCT_OK
               : fail_about(w, index, HPCT_ERR_IO, " became shorter while it was copied");
}

hpct_status hpct_stage_walk_extent(hpct_stage_walk *w, size_t index, int fd, uint64_t at,
                                   uint64_t *end, bool *hole)
{
    const node *n = &w->nodes[index];
    *end = n->size;
    *hole = false;
    if (!n->holes)
        return HPCT_OK;
    off_t data = lseek(fd, (off_t) at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) {
        *hole = true; /* the hole reaches the end of the file */
        return HPCT_OK;
    }
    if (data < 0) /* EINVAL: the file system has no SEEK_DATA */
        return errno == EINVAL ? HPCT_OK : fail_read(w, index);
    if ((uint64_t) data > at) {
        *hole = true;
        *end = (uint64_t) data < n->size ? (uint64_t) data : n->size;
        return HPCT_OK;
    }
    off_t next = lseek(fd, data, SEEK_HOLE);
    if (next < 0)
        return fail_read(w, index);
    if ((uint64_t) next < n->size && (uint64_t) next > at)
        *end = (uint64_t) next;
    return HPCT_OK;
}

/* One check after reading suffices: it shows that the file is the listed one, unchanged. */
hpct_status hpct_stage_walk_whole(hpct_stage_walk *w, size_t index, void *data)
{
    int fd = -1;
    HPCT_TRY(open_file(w, index, &fd));
    hpct_status read = hpct_stage_walk_read(w, index, fd, data, (size_t) w->nodes[index].size, 0);
    if (read == HPCT_OK)
        read = hpct_stage_walk_unchanged(w, index, fd);
    close(fd);
    return read;
}
