/* Records of fixed size, found by the hash of their path. The file: a header, the records sorted by
 * that hash, and a hash over both; in host byte order, as only this node reads it. */
#include <config.h>

#include "spank/stage/tree/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/walk.h"

#define MAGIC UINT64_C(0x31746e666d747068) /* "hptmfnt1" */
#define PIECE (128u << 10)

typedef struct record {
    uint64_t path; /* XXH3 of the path */
    uint64_t hash; /* file: of its content; symbolic link: of its text; hard link: of the target's
                      path until sort(), then as the file */
    uint64_t size;
    int64_t seconds; /* modification time of a file or link */
    uint32_t nanoseconds;
    uint16_t mode;
    uint8_t kind;
    uint8_t zero;
    uint64_t order; /* of hpct_stage_manifest_note calls */
} record;

typedef struct header {
    uint64_t magic, source, count;
} header;

struct hpct_stage_manifest {
    pthread_mutex_t mutex;
    record *records;
    size_t count, room;
    bool sorted;
    struct timespec saved; /* mtime of the manifest file, by the clock of its file system */
};

hpct_stage_manifest *hpct_stage_manifest_new(void)
{
    hpct_stage_manifest *m = calloc(1, sizeof *m);
    if (m != NULL)
        pthread_mutex_init(&m->mutex, NULL);
    return m;
}

void hpct_stage_manifest_free(hpct_stage_manifest *m)
{
    if (m == NULL)
        return;
    pthread_mutex_destroy(&m->mutex);
    free(m->records);
    free(m);
}

static uint64_t hash_text(const char *text)
{
    return hpct_stage_hash(text, strlen(text));
}

hpct_status hpct_stage_manifest_note(hpct_stage_manifest *m, const hpct_stage_item *item,
                                     uint64_t hash)
{
    hpct_status status = HPCT_OK;
    record r = {.path = hash_text(item->path),
                .mode = (uint16_t) (item->mode & 0777),
                .kind = (uint8_t) item->kind};
    if (item->kind == HPCT_STAGE_ITEM_FILE) {
        r.hash = hash;
        r.size = item->size;
    } else if (item->kind == HPCT_STAGE_ITEM_SYMLINK) {
        r.hash = hash_text(item->target);
    }
    if (item->kind == HPCT_STAGE_ITEM_HARDLINK)
        r.hash = hash_text(item->target);
    if (item->kind == HPCT_STAGE_ITEM_FILE || item->kind == HPCT_STAGE_ITEM_SYMLINK) {
        r.seconds = item->times[1].tv_sec;
        r.nanoseconds = (uint32_t) item->times[1].tv_nsec;
    }
    pthread_mutex_lock(&m->mutex);
    if (m->count == m->room) {
        size_t room = m->room * 2 + 256;
        record *records = realloc(m->records, room * sizeof *records);
        if (records == NULL) {
            status = hpct_fail_memory(room * sizeof *records);
        } else {
            m->records = records;
            m->room = room;
        }
    }
    if (status == HPCT_OK) {
        r.order = m->count;
        m->records[m->count++] = r;
        m->sorted = false;
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static int by_path(const void *a, const void *b)
{
    const record *x = a, *y = b;
    if (x->path != y->path)
        return x->path < y->path ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static const record *find(const hpct_stage_manifest *m, uint64_t path)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->records[middle].path < path)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->count && m->records[low].path == path ? &m->records[low] : NULL;
}

/* Replaces the record of a hard link by that of its file. */
static void settle(const hpct_stage_manifest *m, record *r)
{
    const record *same = r;
    for (int i = 0; i < 64 && same != NULL && same->kind == HPCT_STAGE_ITEM_HARDLINK; i++)
        same = find(m, same->hash);
    if (same == NULL)
        return; /* the kind stays HARDLINK, which no listing matches: the source is staged again */
    record settled = *same;
    settled.path = r->path;
    settled.order = r->order;
    *r = settled;
}

/* Keeps the last of several records for one path. */
static void sort(hpct_stage_manifest *m)
{
    size_t kept = 0;
    if (m->count > 0)
        qsort(m->records, m->count, sizeof *m->records, by_path);
    for (size_t i = 0; i < m->count; i++) {
        if (kept > 0 && m->records[kept - 1].path == m->records[i].path)
            kept--;
        m->records[kept++] = m->records[i];
    }
    m->count = kept;
    for (size_t i = 0; i < kept; i++) {
        if (m->records[i].kind == HPCT_STAGE_ITEM_HARDLINK)
            settle(m, &m->records[i]);
    }
    m->sorted = true;
}

/* ---- the file ---- */

static bool get(int fd, void *data, size_t size)
{
    return hpct_fd_read(fd, data, size) == (ssize_t) size;
}

static uint64_t sum(const header *head, const record *records)
{
    return hpct_stage_hash(head, sizeof *head) ^
           hpct_stage_hash(records, (size_t) head->count * sizeof *records);
}

hpct_status hpct_stage_manifest_save(hpct_stage_manifest *m, int folder, const char *name,
                                     uint64_t source)
{
    static const char temporary[] = "manifest.new";
    if (!m->sorted)
        sort(m);
    header head = {.magic = MAGIC, .source = source, .count = m->count};
    uint64_t check = sum(&head, m->records);
    unlinkat(folder, temporary, 0);
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && hpct_fd_write(fd, &head, sizeof head) &&
                hpct_fd_write(fd, m->records, m->count * sizeof *m->records) &&
                hpct_fd_write(fd, &check, sizeof check);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && renameat(folder, temporary, folder, name) != 0) {
        good = false;
        error = errno;
    }
    if (!good)
        unlinkat(folder, temporary, 0);
    return good ? HPCT_OK
                : hpct_fail(HPCT_ERR_IO, "the list of what was staged cannot be written: %s",
                            strerror(error));
}

static hpct_status fail_load(const char *why)
{
    return hpct_fail(HPCT_ERR_DATA, "%s", why);
}

hpct_status hpct_stage_manifest_load(hpct_stage_manifest **out, int folder, const char *name,
                                     uint64_t source)
{
    header head;
    uint64_t check = 0;
    struct stat info;
    hpct_status status = HPCT_OK;
    hpct_stage_manifest *m = NULL;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fail_load("nothing was staged there yet");
    if (fstat(fd, &info) != 0 || !get(fd, &head, sizeof head) || head.magic != MAGIC ||
        (uint64_t) info.st_size / sizeof(record) < head.count ||
        (uint64_t) info.st_size != sizeof head + head.count * sizeof(record) + sizeof check) {
        status = fail_load("the list of what was staged is damaged");
        goto end;
    }
    if (head.source != source) {
        status = fail_load("the source is not what was staged before");
        goto end;
    }
    m = hpct_stage_manifest_new();
    if (m != NULL)
        m->records = malloc((size_t) head.count * sizeof *m->records + 1);
    if (m == NULL || m->records == NULL) {
        status = hpct_fail_memory((size_t) head.count * sizeof *m->records);
        goto end;
    }
    m->count = m->room = (size_t) head.count;
    m->sorted = true;
    m->saved = info.st_mtim;
    if (!get(fd, m->records, m->count * sizeof *m->records) || !get(fd, &check, sizeof check) ||
        check != sum(&head, m->records))
        status = fail_load("the list of what was staged is damaged");
end:
    close(fd);
    if (status == HPCT_OK)
        *out = m;
    else
        hpct_stage_manifest_free(m);
    return status;
}

/* ---- comparing ---- */

/* Whether the inode changed since the manifest was saved. */
static bool touched(const hpct_stage_manifest *m, struct timespec changed)
{
    return changed.tv_sec > m->saved.tv_sec ||
           (changed.tv_sec == m->saved.tv_sec && changed.tv_nsec >= m->saved.tv_nsec);
}

static hpct_status hash_file(hpct_stage_walk *copy, size_t index, int fd, uint64_t size,
                             hpct_stage_report *report, uint64_t *hash)
{
    hpct_stage_hasher *hasher = hpct_stage_hasher_new();
    char *data = malloc(PIECE);
    hpct_status status = hasher == NULL || data == NULL ? hpct_fail_memory(PIECE) : HPCT_OK;
    for (uint64_t at = 0, end = 0; at < size && status == HPCT_OK;) {
        bool hole = false;
        if (at == end) {
            status = hpct_stage_walk_extent(copy, index, fd, at, &end, &hole);
            if (status == HPCT_OK && hole) {
                hpct_stage_hasher_add(hasher, NULL, end - at);
                at = end;
            }
            continue;
        }
        size_t part = end - at < PIECE ? (size_t) (end - at) : PIECE;
        status = hpct_stage_walk_read(copy, index, fd, data, part, at);
        if (status == HPCT_OK)
            hpct_stage_hasher_add(hasher, data, part);
        if (status == HPCT_OK)
            status = hpct_stage_report_tick(report, 0);
        at += part;
    }
    if (status == HPCT_OK)
        *hash = hpct_stage_hasher_end(hasher);
    hpct_stage_hasher_free(hasher);
    free(data);
    return status;
}

static hpct_status differs(const char *path)
{
    return hpct_fail(HPCT_ERR_DATA, "%s was changed in the copy", *path == '\0' ? "it" : path);
}

static hpct_status check(hpct_stage_manifest *m, hpct_stage_walk *copy, size_t index,
                         size_t *matched, hpct_stage_report *report)
{
    char path[PATH_MAX], target[PATH_MAX];
    hpct_stage_item item;
    hpct_stage_walk_item(copy, index, &item, path, target);
    const record *r = find(m, hash_text(path));
    if (r == NULL && item.kind == HPCT_STAGE_ITEM_FOLDER)
        return HPCT_OK; /* see hpct_stage_manifest_note */
    if (r == NULL)
        return differs(path);
    ++*matched;
    hpct_stage_item_kind kind = (hpct_stage_item_kind) r->kind;
    if (item.kind == HPCT_STAGE_ITEM_HARDLINK) { /* its content is checked under the other name */
        const record *other = find(m, hash_text(target));
        return kind == HPCT_STAGE_ITEM_FILE && other != NULL &&
                       other->kind == HPCT_STAGE_ITEM_FILE && r->hash == other->hash &&
                       r->size == other->size
                   ? HPCT_OK
                   : differs(path);
    }
    if (kind != item.kind || (kind != HPCT_STAGE_ITEM_SYMLINK && r->mode != item.mode))
        return differs(path);
    if (kind == HPCT_STAGE_ITEM_FOLDER)
        return HPCT_OK;
    if (r->seconds != item.times[1].tv_sec || r->nanoseconds != (uint32_t) item.times[1].tv_nsec)
        return differs(path);
    if (kind == HPCT_STAGE_ITEM_SYMLINK)
        return r->hash == hash_text(target) ? HPCT_OK : differs(path);
    if (r->size != item.size)
        return differs(path);
    if (!touched(m, hpct_stage_walk_changed(copy, index)))
        return HPCT_OK;
    int fd = -1;
    uint64_t hash = 0;
    HPCT_TRY(hpct_stage_walk_file(copy, index, &fd));
    hpct_status status = hash_file(copy, index, fd, item.size, report, &hash);
    close(fd);
    return status == HPCT_OK && hash != r->hash ? differs(path) : status;
}

bool hpct_stage_manifest_holds(hpct_stage_manifest *m, int above, const char *last,
                               hpct_stage_report *report)
{
    static const hpct_stage_walk_options keep;
    hpct_stage_walk *copy = NULL;
    size_t matched = 0;
    int fd = openat(above, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        hpct_fail(HPCT_ERR_DATA, "the copy is gone");
        return false;
    }
    hpct_status status = hpct_stage_walk_open(&copy, fd, last, &keep, report);
    for (size_t i = 0; status == HPCT_OK && i < hpct_stage_walk_count(copy); i++) {
        status = hpct_stage_report_tick(report, 0);
        if (status == HPCT_OK)
            status = check(m, copy, i, &matched, report);
    }
    if (status == HPCT_OK && matched != m->count)
        status = hpct_fail(HPCT_ERR_DATA, "files are missing in the copy");
    hpct_stage_walk_close(copy);
    close(fd);
    return status == HPCT_OK;
}
