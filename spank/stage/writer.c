/* Making items through descriptors. A sink is a file on its way. */
#include <config.h>

#include "spank/stage/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/folders.h"
#include "spank/stage/hash.h"
#include "spank/stage/manifest.h"

#define PIECE HPCT_LANE_PIECE /* read back while it is in the processor's cache */

typedef struct folder {
    char *path;
    mode_t mode;
    struct timespec times[2];
    size_t order; /* of making */
} folder;

struct hpct_writer {
    hpct_writer_options options;
    char *name;
    int outer; /* the folder that the root lies in */
    char root[NAME_MAX + 1];
    int fd; /* the root when it is a folder, else -1 */
    bool has_root;
    mode_t umask; /* bits that open and mkdir may take away */
    hpct_folders *folders;
    _Atomic uint64_t bytes, entries;
    pthread_mutex_t mutex; /* for `list` */
    folder *list;
    size_t count, room;
};

struct hpct_sink {
    hpct_writer *writer;
    int fd;
    char *path;
    mode_t mode;
    struct timespec times[2];
    uint64_t size;
    hpct_lane *lane;  /* of hpct_sink_data; made when it is needed */
    uint64_t *hashes; /* [hpct_hash_count(size)] */
    _Atomic uint64_t blocks_done;
};

struct hpct_lane {
    hpct_sink *sink;
    uint64_t block, at, end; /* bytes of the file */
    bool present;
    hpct_hasher *given, *found; /* of what was handed in, of what was read back */
    char *back;                 /* [PIECE], on whole pages: copying is faster */
};

/* ---- messages ---- */

static hpct_status fail_about(const hpct_writer *w, hpct_status status, const char *path,
                              const char *what)
{
    return hpct_fail(status, "%s%s%s: %s", w->name, *path == '\0' ? "" : "/", path, what);
}

static hpct_status fail_make(const hpct_writer *w, const char *path)
{
    int error = errno;
    return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy cannot be written: %s", w->name,
                     *path == '\0' ? "" : "/", path, strerror(error));
}

/* ---- the writer ---- */

/* umask(2) cannot be asked without being set, which other threads would notice. */
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

hpct_status hpct_writer_open(hpct_writer **out, int outer, const char *root,
                             const hpct_writer_options *options)
{
    hpct_writer *w = calloc(1, sizeof *w);
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
        hpct_writer_close(w);
        return hpct_fail_memory(0);
    }
    *out = w;
    return HPCT_OK;
}

void hpct_writer_close(hpct_writer *w)
{
    if (w == NULL)
        return;
    hpct_folders_free(w->folders);
    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->count; i++)
        free(w->list[i].path);
    free(w->list);
    pthread_mutex_destroy(&w->mutex);
    free(w->name);
    free(w);
}

static hpct_status remember(hpct_writer *w, const hpct_item *item)
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

static hpct_status open_root(hpct_writer *w)
{
    w->fd = openat(w->outer, w->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->fd < 0)
        return fail_make(w, "");
    w->folders = hpct_folders_new(w->fd, w->options.loose, false);
    return w->folders == NULL ? hpct_fail_memory(0) : HPCT_OK;
}

/* Whether this item may come now, whatever its kind. */
static hpct_status check(hpct_writer *w, const hpct_item *item)
{
    if (!hpct_item_path_ok(item->path))
        return fail_about(w, HPCT_ERR_DATA, item->path,
                          "no name that can be made: it leads out of the folder, or is too long");
    if ((*item->path == '\0') == w->has_root || (w->has_root && w->fd < 0))
        return fail_about(w, HPCT_ERR_DATA, item->path, "it comes where nothing can come");
    uint64_t entries = atomic_fetch_add(&w->entries, 1) + 1;
    if (w->options.max_entries != 0 && entries > w->options.max_entries)
        return hpct_fail(HPCT_ERR_CONFIG, "%s has more than %llu files, for which there is no room",
                         w->name, (unsigned long long) w->options.max_entries);
    return HPCT_OK;
}

/* Bytes that will be written, before they are. */
static hpct_status take(hpct_writer *w, uint64_t size)
{
    uint64_t bytes = atomic_fetch_add(&w->bytes, size) + size;
    if (w->options.max_bytes != 0 && (bytes > w->options.max_bytes || bytes < size))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s has more content than the %llu bytes that it may "
                         "have here (stage_max, or the free space)",
                         w->name, (unsigned long long) w->options.max_bytes);
    return HPCT_OK;
}

/* The open folder for the item, and its name there. */
static hpct_status enter(hpct_writer *w, const char *path, int *fd, const char **last)
{
    if (*path == '\0') {
        *fd = w->outer;
        *last = w->root;
        return HPCT_OK;
    }
    *fd = hpct_folders_get(w->folders, path, last);
    if (*fd >= 0)
        return HPCT_OK;
    if (errno == ELOOP || errno == ENOTDIR || errno == ENOENT)
        return fail_about(w, HPCT_ERR_DATA, path, "it lies in what is no folder");
    return fail_make(w, path);
}

static void leave(hpct_writer *w, int fd)
{
    if (fd != w->outer)
        hpct_folders_put(w->folders, fd);
}

/* After EEXIST: whether another try is due. Folders are not replaced. */
static bool make_room(const hpct_writer *w, int fd, const char *last)
{
    int kept = errno;
    if (kept == EEXIST && w->options.loose && unlinkat(fd, last, 0) == 0)
        return true;
    errno = kept;
    return false;
}

static hpct_status fail_new(const hpct_writer *w, const char *path)
{
    if (errno == EEXIST)
        return fail_about(w, HPCT_ERR_DATA, path, "it comes twice");
    return fail_make(w, path);
}

/* ---- all but files ---- */

static hpct_status make_folder(hpct_writer *w, const hpct_item *item, int fd, const char *last)
{
    struct stat info;
    if (mkdirat(fd, last, 0700) != 0 &&
        !(errno == EEXIST && w->options.loose && *item->path != '\0' &&
          fstatat(fd, last, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)))
        return fail_new(w, item->path);
    hpct_status status = *item->path == '\0' ? open_root(w) : HPCT_OK;
    return status == HPCT_OK ? remember(w, item) : status;
}

static hpct_status fail_link(const hpct_writer *w, const char *path, const char *text)
{
    return hpct_fail(HPCT_ERR_DATA, "%s/%s is a link to '%s', out of the folder that is staged",
                     w->name, path, text);
}

static hpct_status make_symlink(hpct_writer *w, const hpct_item *item, int fd, const char *last)
{
    if (!hpct_item_link_stays(item->path, item->target))
        return fail_link(w, item->path, item->target);
    while (symlinkat(item->target, fd, last) != 0) {
        if (!make_room(w, fd, last))
            return fail_new(w, item->path);
    }
    if (utimensat(fd, last, item->times, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_make(w, item->path);
    return HPCT_OK;
}

static hpct_status make_hard_link(hpct_writer *w, const hpct_item *item, int fd, const char *last)
{
    int from = -1;
    const char *name = NULL;
    struct stat info;
    if (!hpct_item_path_ok(item->target) || *item->target == '\0')
        return hpct_fail(HPCT_ERR_DATA, "%s/%s is a link to '%s', which is no name in it", w->name,
                         item->path, item->target);
    hpct_status status = enter(w, item->target, &from, &name);
    if (status != HPCT_OK)
        return status;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(info.st_mode)) {
        status = hpct_fail(HPCT_ERR_DATA, "%s/%s is a further name of '%s', which is not there",
                           w->name, item->path, item->target);
        goto end;
    }
    if (S_ISLNK(info.st_mode)) { /* elsewhere in the tree its text leads elsewhere */
        char text[PATH_MAX];
        ssize_t size = readlinkat(from, name, text, sizeof text - 1);
        text[size < 0 ? 0 : size] = '\0';
        if (!hpct_item_link_stays(item->path, text)) {
            status = fail_link(w, item->path, text);
            goto end;
        }
    }
    if (strcmp(item->path, item->target) == 0)
        goto end; /* some archives say so; nothing is to be done */
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

hpct_status hpct_writer_add(hpct_writer *w, const hpct_item *item)
{
    int fd = -1;
    const char *last = NULL;
    if (w->options.loose && w->fd >= 0 && *item->path == '\0' && item->kind == HPCT_ITEM_FOLDER)
        return remember(w, item); /* an archive's own "./" */
    hpct_status status = check(w, item);
    if (status == HPCT_OK && *item->path == '\0' && item->kind != HPCT_ITEM_FOLDER)
        status = fail_about(w, HPCT_ERR_DATA, item->path, "it is neither a file nor a folder");
    if (status == HPCT_OK)
        status = enter(w, item->path, &fd, &last);
    if (status != HPCT_OK)
        return status;
    if (item->kind == HPCT_ITEM_FOLDER)
        status = make_folder(w, item, fd, last);
    else if (item->kind == HPCT_ITEM_SYMLINK)
        status = make_symlink(w, item, fd, last);
    else if (item->kind == HPCT_ITEM_HARDLINK)
        status = make_hard_link(w, item, fd, last);
    else
        status = fail_about(w, HPCT_ERR_INTERNAL, item->path, "a file is not made like this");
    leave(w, fd);
    if (*item->path == '\0')
        w->has_root = true;
    if (status == HPCT_OK && w->options.manifest != NULL)
        status = hpct_manifest_note(w->options.manifest, item, 0);
    return status;
}

/* The innermost first: a folder may lose the right to be entered, and making what is in it would
 * change its times. Of several items for one folder the last one counts. */
static int by_depth(const void *a, const void *b)
{
    const folder *x = a, *y = b;
    size_t dx = strlen(x->path), dy = strlen(y->path);
    if (dx != dy)
        return dx > dy ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

hpct_status hpct_writer_finish(hpct_writer *w)
{
    if (!w->has_root)
        return hpct_fail(HPCT_ERR_DATA, "%s: there is nothing in it", w->name);
    if (w->count > 0)
        qsort(w->list, w->count, sizeof *w->list, by_depth);
    for (size_t i = 0; i < w->count; i++) {
        const folder *f = &w->list[i];
        int above = -1;
        const char *last = NULL;
        hpct_status status = enter(w, f->path, &above, &last);
        if (status != HPCT_OK)
            return status;
        int fd = openat(above, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchmod(fd, f->mode) != 0 || futimens(fd, f->times) != 0)
            status = fail_make(w, f->path);
        if (fd >= 0)
            close(fd);
        leave(w, above);
        if (status != HPCT_OK)
            return status;
    }
    return HPCT_OK;
}

/* ---- files ---- */

static hpct_status create(hpct_writer *w, const hpct_item *item, int *fd)
{
    int above = -1;
    const char *last = NULL;
    hpct_status status = check(w, item);
    if (status == HPCT_OK)
        status = enter(w, item->path, &above, &last);
    if (status != HPCT_OK)
        return status;
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

static hpct_status write_at(const hpct_writer *w, int fd, const char *path, const char *data,
                            size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t put = pwrite(fd, data, size, (off_t) at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_make(w, path);
        data += put;
        size -= (size_t) put;
        at += (uint64_t) put;
    }
    return HPCT_OK;
}

static hpct_status read_at(const hpct_writer *w, int fd, const char *path, char *data, size_t size,
                           uint64_t at)
{
    while (size > 0) {
        ssize_t got = pread(fd, data, size, (off_t) at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hpct_fail(HPCT_ERR_IO, "%s%s%s: the copy cannot be read back: %s", w->name,
                             *path == '\0' ? "" : "/", path, strerror(errno));
        if (got == 0)
            return fail_about(w, HPCT_ERR_IO, path, "the copy became shorter while it was written");
        data += got;
        size -= (size_t) got;
        at += (uint64_t) got;
    }
    return HPCT_OK;
}

static hpct_status fail_differs(const hpct_writer *w, const char *path)
{
    return fail_about(w, HPCT_ERR_IO, path,
                      "the copy is not what was written (its hash differs): the disk or the memory "
                      "of this node is bad");
}

static hpct_status fail_more(const hpct_sink *sink)
{
    return fail_about(sink->writer, HPCT_ERR_DATA, sink->path,
                      "there is more in it than its size says");
}

static hpct_status set_mode_and_times(const hpct_writer *w, int fd, const char *path, mode_t mode,
                                      const struct timespec times[2])
{
    mode &= 0777;
    if (((mode & w->umask) != 0 && fchmod(fd, mode) != 0) || futimens(fd, times) != 0)
        return fail_make(w, path);
    return HPCT_OK;
}

hpct_status hpct_writer_whole(hpct_writer *w, const hpct_item *item, const void *content,
                              uint64_t *hash)
{
    static _Thread_local char back[PIECE];
    int fd = -1;
    size_t size = (size_t) item->size;
    uint64_t given = 0;
    if (item->size > sizeof back) {
        hpct_sink *sink = NULL;
        hpct_status begun = hpct_writer_begin(w, item, &sink);
        if (begun != HPCT_OK)
            return begun;
        begun = hpct_sink_data(sink, content, size);
        if (begun == HPCT_OK)
            return hpct_sink_end(sink, hash);
        hpct_sink_drop(sink);
        return begun;
    }
    hpct_status status = take(w, size);
    if (status == HPCT_OK)
        status = create(w, item, &fd);
    if (status != HPCT_OK)
        return status;
    status = write_at(w, fd, item->path, content, size, 0);
    if (status == HPCT_OK)
        status = read_at(w, fd, item->path, back, size, 0);
    if (status == HPCT_OK) {
        given = hpct_hash(content, size);
        if (hpct_hash(back, size) != given)
            status = fail_differs(w, item->path);
        if (hash != NULL)
            *hash = given;
    }
    if (status == HPCT_OK)
        status = set_mode_and_times(w, fd, item->path, item->mode, item->times);
    if (close(fd) != 0 && status == HPCT_OK)
        status = fail_make(w, item->path);
    if (status == HPCT_OK && w->options.manifest != NULL)
        status = hpct_manifest_note(w->options.manifest, item, given);
    return status;
}

/* ---- files in pieces ---- */

hpct_lane *hpct_lane_new(void)
{
    hpct_lane *lane = malloc(sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->sink = NULL;
    lane->given = hpct_hasher_new();
    lane->found = hpct_hasher_new();
    lane->back = aligned_alloc(4096, PIECE);
    if (lane->given == NULL || lane->found == NULL || lane->back == NULL) {
        hpct_lane_free(lane);
        return NULL;
    }
    return lane;
}

void hpct_lane_free(hpct_lane *lane)
{
    if (lane == NULL)
        return;
    hpct_hasher_free(lane->given);
    hpct_hasher_free(lane->found);
    free(lane->back);
    free(lane);
}

char *hpct_lane_buffer(hpct_lane *lane)
{
    return lane->back;
}

hpct_status hpct_lane_begin(hpct_lane *lane, hpct_sink *sink, uint64_t block, bool present)
{
    uint64_t left = sink->size - block * HPCT_HASH_BLOCK;
    lane->sink = sink;
    lane->block = block;
    lane->present = present;
    lane->at = block * HPCT_HASH_BLOCK;
    lane->end = lane->at + (left < HPCT_HASH_BLOCK ? left : HPCT_HASH_BLOCK);
    hpct_hasher_reset(lane->given);
    hpct_hasher_reset(lane->found);
    return HPCT_OK;
}

hpct_status hpct_lane_data(hpct_lane *lane, const void *data, size_t size)
{
    hpct_sink *sink = lane->sink;
    const hpct_writer *w = sink->writer;
    const char *p = data;
    hpct_status status = size > lane->end - lane->at ? fail_more(sink) : HPCT_OK;
    if (status == HPCT_OK)
        status = take(sink->writer, size);
    while (size > 0 && status == HPCT_OK) {
        size_t part = size < PIECE ? size : PIECE;
        hpct_hasher_add(lane->given, p, part);
        if (!lane->present)
            status = write_at(w, sink->fd, sink->path, p, part, lane->at);
        if (status == HPCT_OK)
            status = read_at(w, sink->fd, sink->path, lane->back, part, lane->at);
        if (status == HPCT_OK)
            hpct_hasher_add(lane->found, lane->back, part);
        p += part;
        size -= part;
        lane->at += part;
    }
    return status;
}

hpct_status hpct_lane_hole(hpct_lane *lane, uint64_t size)
{
    if (size > lane->end - lane->at)
        return fail_more(lane->sink);
    /* Nothing is written, so that there is nothing to read back. */
    hpct_hasher_add(lane->given, NULL, size);
    hpct_hasher_add(lane->found, NULL, size);
    lane->at += size;
    return HPCT_OK;
}

hpct_status hpct_lane_end(hpct_lane *lane)
{
    hpct_sink *sink = lane->sink;
    uint64_t hash = hpct_hasher_end(lane->found);
    if (lane->at != lane->end)
        return fail_about(sink->writer, HPCT_ERR_DATA, sink->path,
                          "there is less in it than its size says");
    if (hash != hpct_hasher_end(lane->given))
        return fail_differs(sink->writer, sink->path);
    sink->hashes[lane->block] = hash;
    atomic_fetch_add(&sink->blocks_done, 1);
    return HPCT_OK;
}

hpct_status hpct_writer_begin(hpct_writer *w, const hpct_item *item, hpct_sink **out)
{
    hpct_sink *sink = calloc(1, sizeof *sink);
    hpct_status status = HPCT_OK;
    uint64_t count = hpct_hash_count(item->size);
    if (sink == NULL)
        return hpct_fail_memory(sizeof *sink);
    sink->writer = w;
    sink->fd = -1;
    sink->path = strdup(item->path);
    sink->mode = item->mode;
    sink->times[0] = item->times[0];
    sink->times[1] = item->times[1];
    sink->size = item->size;
    if (item->size > INT64_MAX)
        status = fail_about(w, HPCT_ERR_DATA, item->path, "no file can be so large");
    else
        sink->hashes = malloc((size_t) count * sizeof *sink->hashes);
    if (status == HPCT_OK && (sink->path == NULL || sink->hashes == NULL))
        status = hpct_fail_memory((size_t) count * sizeof *sink->hashes);
    if (status == HPCT_OK)
        status = create(w, item, &sink->fd);
    if (status != HPCT_OK) {
        hpct_sink_drop(sink);
        return status;
    }
    *out = sink;
    return HPCT_OK;
}

void hpct_sink_drop(hpct_sink *sink)
{
    if (sink == NULL)
        return;
    if (sink->fd >= 0)
        close(sink->fd);
    hpct_lane_free(sink->lane);
    free(sink->hashes);
    free(sink->path);
    free(sink);
}

int hpct_sink_fd(const hpct_sink *sink)
{
    return sink->fd;
}

/* From block to block. NULL data: a hole. */
static hpct_status append(hpct_sink *sink, const char *data, uint64_t size)
{
    hpct_status status = HPCT_OK;
    if (sink->lane == NULL) {
        sink->lane = hpct_lane_new();
        if (sink->lane == NULL)
            return hpct_fail_memory(sizeof *sink->lane);
        hpct_lane_begin(sink->lane, sink, 0, false);
    }
    if (size > sink->size - sink->lane->at)
        return fail_more(sink);
    while (size > 0 && status == HPCT_OK) {
        hpct_lane *lane = sink->lane;
        if (lane->at == lane->end) {
            status = hpct_lane_end(lane);
            hpct_lane_begin(lane, sink, lane->block + 1, false);
            continue;
        }
        uint64_t left = lane->end - lane->at, part = size < left ? size : left;
        if (data == NULL) {
            status = hpct_lane_hole(lane, part);
        } else {
            status = hpct_lane_data(lane, data, (size_t) part);
            data += part;
        }
        size -= part;
    }
    return status;
}

hpct_status hpct_sink_data(hpct_sink *sink, const void *data, size_t size)
{
    return append(sink, data, size);
}

hpct_status hpct_sink_hole(hpct_sink *sink, uint64_t size)
{
    return append(sink, NULL, size);
}

hpct_status hpct_sink_end(hpct_sink *sink, uint64_t *hash)
{
    hpct_writer *w = sink->writer;
    struct stat info;
    uint64_t count = hpct_hash_count(sink->size), found = 0;
    hpct_status status = HPCT_OK;
    if (sink->lane != NULL || sink->size == 0) {
        status = append(sink, NULL, 0);
        if (status == HPCT_OK)
            status = hpct_lane_end(sink->lane);
    }
    if (status == HPCT_OK && sink->blocks_done != count)
        status = fail_about(w, HPCT_ERR_DATA, sink->path, "there is less in it than its size says");
    /* A hole at the end. */
    if (status == HPCT_OK && fstat(sink->fd, &info) != 0)
        status = fail_make(w, sink->path);
    if (status == HPCT_OK && (uint64_t) info.st_size < sink->size &&
        ftruncate(sink->fd, (off_t) sink->size) != 0)
        status = fail_make(w, sink->path);
    if (status == HPCT_OK)
        found = hpct_hash_blocks(sink->hashes, count);
    if (status == HPCT_OK)
        status = set_mode_and_times(w, sink->fd, sink->path, sink->mode, sink->times);
    int fd = sink->fd;
    sink->fd = -1;
    if (close(fd) != 0 && status == HPCT_OK)
        status = fail_make(w, sink->path);
    if (status == HPCT_OK && w->options.manifest != NULL) {
        hpct_item item = {.kind = HPCT_ITEM_FILE,
                          .path = sink->path,
                          .size = sink->size,
                          .mode = sink->mode,
                          .times = {sink->times[0], sink->times[1]}};
        status = hpct_manifest_note(w->options.manifest, &item, found);
    }
    if (hash != NULL)
        *hash = found;
    hpct_sink_drop(sink);
    return status;
}
