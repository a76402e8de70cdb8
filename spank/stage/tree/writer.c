/* Creates folders and links by *at calls; what files share with them. */
#include <config.h>

#include "spank/stage/tree/writer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/manifest.h"

/* ---- messages ---- */

hpct_status hpct_stage_writer_fail(const hpct_stage_writer *w, hpct_status status, const char *path,
                                   const char *what)
{
    return hpct_fail(status, "%s%s%s: %s", w->name, *path == '\0' ? "" : "/", path, what);
}

hpct_status hpct_stage_writer_fail_make(const hpct_stage_writer *w, const char *path)
{
    int error = errno;
    return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy cannot be written: %s", w->name,
                     *path == '\0' ? "" : "/", path, strerror(error));
}

/* ---- the writer ---- */

/* umask(2) cannot query the mask without setting it, which would affect other threads. */
static mode_t own_umask(void)
{
    unsigned mask = 0777;
    char line[128];
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return 0777;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "Umask: %o", &mask) != 1) {
    }
    fclose(file);
    return (mode_t) mask;
}

hpct_status hpct_stage_writer_open(hpct_stage_writer **out, int outer, const char *root,
                                   const hpct_stage_writer_options *options)
{
    hpct_stage_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hpct_fail_memory(sizeof *w);
    w->options = *options;
    w->name = strdup(options->name);
    w->outer = outer;
    w->fd = -1;
    w->umask = own_umask();
    snprintf(w->root, sizeof w->root, "%s", root);
    pthread_mutex_init(&w->mutex, NULL);
    if (w->name == NULL) {
        hpct_stage_writer_close(w);
        return hpct_fail_memory(0);
    }
    *out = w;
    return HPCT_OK;
}

void hpct_stage_writer_close(hpct_stage_writer *w)
{
    if (w == NULL)
        return;
    hpct_stage_folders_free(w->folders);
    hpct_fd_close(w->fd);
    for (size_t i = 0; i < w->count; i++)
        free(w->list[i].path);
    free(w->list);
    pthread_mutex_destroy(&w->mutex);
    free(w->name);
    free(w);
}

static hpct_status remember(hpct_stage_writer *w, const hpct_stage_item *item)
{
    hpct_status status = HPCT_OK;
    pthread_mutex_lock(&w->mutex);
    if (w->count == w->room) {
        size_t room = w->room * 2 + 64;
        folder *list = realloc(w->list, room * sizeof *list);
        if (list == NULL) {
            status = hpct_fail_memory(room * sizeof *list);
            goto end;
        }
        w->list = list;
        w->room = room;
    }
    folder *f = &w->list[w->count];
    *f = (folder){.path = strdup(item->path),
                  .mode = item->mode & 0777,
                  .times = {item->times[0], item->times[1]},
                  .order = w->count};
    if (f->path == NULL)
        status = hpct_fail_memory(0);
    else
        w->count++;
end:
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static hpct_status open_root(hpct_stage_writer *w)
{
    w->fd = openat(w->outer, w->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->fd < 0)
        return hpct_stage_writer_fail_make(w, "");
    w->folders = hpct_stage_folders_new(w->fd, w->options.loose, false);
    return w->folders == NULL ? hpct_fail_memory(0) : HPCT_OK;
}

/* Checks what all kinds have in common: path, order, limits. */
static hpct_status check(hpct_stage_writer *w, const hpct_stage_item *item)
{
    if (!hpct_stage_item_path_ok(item->path))
        return hpct_stage_writer_fail(
            w, HPCT_ERR_DATA, item->path,
            "this name cannot be made: it leads out of the folder, or is too long");
    if ((*item->path == '\0') == w->has_root || (w->has_root && w->fd < 0))
        return hpct_stage_writer_fail(w, HPCT_ERR_DATA, item->path, "nothing can come there");
    uint64_t entries = atomic_fetch_add(&w->entries, 1) + 1;
    if (w->options.max_entries != 0 && entries > w->options.max_entries)
        return hpct_fail(HPCT_ERR_CONFIG, "%s has more than %llu files, for which there is no room",
                         w->name, (unsigned long long) w->options.max_entries);
    return HPCT_OK;
}

/* Counts bytes against the limit before they are written. */
hpct_status hpct_stage_writer_take(hpct_stage_writer *w, uint64_t size)
{
    uint64_t bytes = atomic_fetch_add(&w->bytes, size) + size;
    if (w->options.max_bytes != 0 && (bytes > w->options.max_bytes || bytes < size))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s has more content than the %llu bytes that it may "
                         "have here (stage_max, or the free space)",
                         w->name, (unsigned long long) w->options.max_bytes);
    return HPCT_OK;
}

/* Opens the item's folder and returns its name in it. */
static hpct_status enter(hpct_stage_writer *w, const char *path, int *fd, const char **last)
{
    if (*path == '\0') {
        *fd = w->outer;
        *last = w->root;
        return HPCT_OK;
    }
    *fd = hpct_stage_folders_get(w->folders, path, last);
    if (*fd >= 0)
        return HPCT_OK;
    if (errno == ELOOP || errno == ENOTDIR || errno == ENOENT)
        return hpct_stage_writer_fail(w, HPCT_ERR_DATA, path, "it lies in what is not a folder");
    return hpct_stage_writer_fail_make(w, path);
}

static void leave(hpct_stage_writer *w, int fd)
{
    if (fd != w->outer)
        hpct_stage_folders_put(w->folders, fd);
}

/* After EEXIST: removes the old entry and returns true to retry. Folders are not replaced. */
static bool make_room(const hpct_stage_writer *w, int fd, const char *last)
{
    int kept = errno;
    if (kept == EEXIST && w->options.loose && unlinkat(fd, last, 0) == 0)
        return true;
    errno = kept;
    return false;
}

static hpct_status fail_new(const hpct_stage_writer *w, const char *path)
{
    if (errno == EEXIST)
        return hpct_stage_writer_fail(w, HPCT_ERR_DATA, path, "it comes twice");
    return hpct_stage_writer_fail_make(w, path);
}

/* ---- folders and links ---- */

static hpct_status make_folder(hpct_stage_writer *w, const hpct_stage_item *item, int fd,
                               const char *last)
{
    struct stat info;
    if (mkdirat(fd, last, 0700) != 0 &&
        !(errno == EEXIST && w->options.loose && *item->path != '\0' &&
          fstatat(fd, last, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)))
        return fail_new(w, item->path);
    if (*item->path == '\0')
        HPCT_TRY(open_root(w));
    return remember(w, item);
}

static hpct_status fail_link(const hpct_stage_writer *w, const char *path, const char *text)
{
    return hpct_fail(HPCT_ERR_DATA, "%s/%s is a link to '%s', out of the folder that is staged",
                     w->name, path, text);
}

static hpct_status make_symlink(hpct_stage_writer *w, const hpct_stage_item *item, int fd,
                                const char *last)
{
    if (!hpct_stage_item_link_stays(item->path, item->target))
        return fail_link(w, item->path, item->target);
    while (symlinkat(item->target, fd, last) != 0) {
        if (!make_room(w, fd, last))
            return fail_new(w, item->path);
    }
    if (utimensat(fd, last, item->times, AT_SYMLINK_NOFOLLOW) != 0)
        return hpct_stage_writer_fail_make(w, item->path);
    return HPCT_OK;
}

static hpct_status make_hard_link(hpct_stage_writer *w, const hpct_stage_item *item, int fd,
                                  const char *last)
{
    int from = -1;
    const char *name = NULL;
    struct stat info;
    if (!hpct_stage_item_path_ok(item->target) || *item->target == '\0')
        return hpct_fail(HPCT_ERR_DATA, "%s/%s is a link to '%s', which is not a name in it",
                         w->name, item->path, item->target);
    HPCT_TRY(enter(w, item->target, &from, &name));
    hpct_status status = HPCT_OK;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(info.st_mode)) {
        status = hpct_fail(HPCT_ERR_DATA, "%s/%s is a further name of '%s', which is not there",
                           w->name, item->path, item->target);
        goto end;
    }
    if (S_ISLNK(info.st_mode)) { /* its relative text resolves differently at another path */
        char text[PATH_MAX];
        ssize_t size = readlinkat(from, name, text, sizeof text - 1);
        text[size < 0 ? 0 : size] = '\0';
        if (!hpct_stage_item_link_stays(item->path, text)) {
            status = fail_link(w, item->path, text);
            goto end;
        }
    }
    if (strcmp(item->path, item->target) == 0)
        goto end; /* a hard link to itself, which some archives contain */
    while (linkat(from, name, fd, last, 0) != 0) {
        if (!make_room(w, fd, last)) {
            status = fail_new(w, item->path);
            break;
        }
    }
end:
    leave(w, from);
    return status;
}

hpct_status hpct_stage_writer_add(hpct_stage_writer *w, const hpct_stage_item *item)
{
    int fd = -1;
    const char *last = NULL;
    if (w->options.loose && w->fd >= 0 && *item->path == '\0' &&
        item->kind == HPCT_STAGE_ITEM_FOLDER)
        return remember(w, item); /* the archive's own "./" */
    HPCT_TRY(check(w, item));
    if (*item->path == '\0' && item->kind != HPCT_STAGE_ITEM_FOLDER)
        return hpct_stage_writer_fail(w, HPCT_ERR_DATA, item->path,
                                      "it is neither a file nor a folder");
    HPCT_TRY(enter(w, item->path, &fd, &last));
    hpct_status status = HPCT_OK;
    if (item->kind == HPCT_STAGE_ITEM_FOLDER)
        status = make_folder(w, item, fd, last);
    else if (item->kind == HPCT_STAGE_ITEM_SYMLINK)
        status = make_symlink(w, item, fd, last);
    else if (item->kind == HPCT_STAGE_ITEM_HARDLINK)
        status = make_hard_link(w, item, fd, last);
    else
        status = hpct_stage_writer_fail(w, HPCT_ERR_INTERNAL, item->path,
                                        "a file is not made like this");
    leave(w, fd);
    if (*item->path == '\0')
        w->has_root = true;
    if (status == HPCT_OK && w->options.manifest != NULL)
        status = hpct_stage_manifest_note(w->options.manifest, item, 0);
    return status;
}

/* Innermost first: a folder's mode may forbid entering it, and creating entries changes its times.
 * Of several items for one folder the last one counts. */
static int by_depth(const void *a, const void *b)
{
    const folder *x = a, *y = b;
    size_t dx = strlen(x->path), dy = strlen(y->path);
    if (dx != dy)
        return dx > dy ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

hpct_status hpct_stage_writer_finish(hpct_stage_writer *w)
{
    if (!w->has_root)
        return hpct_fail(HPCT_ERR_DATA, "%s: there is nothing in it", w->name);
    if (w->count > 0)
        qsort(w->list, w->count, sizeof *w->list, by_depth);
    for (size_t i = 0; i < w->count; i++) {
        const folder *f = &w->list[i];
        int above = -1;
        const char *last = NULL;
        HPCT_TRY(enter(w, f->path, &above, &last));
        hpct_status status = HPCT_OK;
        int fd = openat(above, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchmod(fd, f->mode) != 0 || futimens(fd, f->times) != 0)
            status = hpct_stage_writer_fail_make(w, f->path);
        hpct_fd_close(fd);
        leave(w, above);
        if (status != HPCT_OK)
            return status;
    }
    return HPCT_OK;
}

hpct_status hpct_stage_writer_create(hpct_stage_writer *w, const hpct_stage_item *item, int *fd)
{
    int above = -1;
    const char *last = NULL;
    HPCT_TRY(check(w, item));
    HPCT_TRY(enter(w, item->path, &above, &last));
    hpct_status status = HPCT_OK;
    do {
        *fd = openat(above, last, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     item->mode & 0777);
    } while (*fd < 0 && make_room(w, above, last));
    if (*fd < 0)
        status = fail_new(w, item->path);
    leave(w, above);
    if (*item->path == '\0')
        w->has_root = true;
    return status;
}
