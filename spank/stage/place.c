/* Staging proper. Unfinished copies lie in TO/.hpc-train/incoming, which only the holder of the
 * lock touches and which is emptied by whoever comes next. */
#include <config.h>

#include "spank/stage/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/bytes.h"
#include "spank/stage/tree.h"

#define LOCK_SECONDS 300 /* a holder that makes no progress for so long is stuck */

typedef struct placing {
    const hpct_place *place;
    hpct_report *report;
    int to, own, incoming, lock; /* TO, TO/.hpc-train, …/incoming, …/lock */
} placing;

static hpct_status fail_in(const char *to, const char *what)
{
    return hpct_fail(HPCT_ERR_IO, "%s/%s: %s", to, what, strerror(errno));
}

static int open_folder(int at, const char *name)
{
    if (mkdirat(at, name, 0700) != 0 && errno != EEXIST)
        return -1;
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The holder touches the lock file as it goes; its time tells the others that it lives. */
static hpct_status take_lock(placing *p)
{
    struct stat info;
    struct timespec seen = {0};
    for (int idle = 0; flock(p->lock, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail_in(p->place->to, HPCT_PRIVATE_FOLDER "/lock");
        if (idle == 20)
            hpct_report_say("another step of the job stages to %s: waiting for it", p->place->to);
        if (fstat(p->lock, &info) == 0 && memcmp(&seen, &info.st_mtim, sizeof seen) != 0) {
            seen = info.st_mtim;
            idle = idle > 20 ? 21 : idle; /* said once */
            hpct_status status = hpct_report_tick(p->report, 0);
            if (status != HPCT_OK)
                return status;
        }
        if (++idle > LOCK_SECONDS * 10)
            return hpct_fail(
                HPCT_ERR_IO,
                "another step of the job stages to %s, without progress for %d seconds",
                p->place->to, LOCK_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return HPCT_OK;
}

static hpct_status prepare(placing *p)
{
    const char *to = p->place->to;
    p->to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->to < 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", to, strerror(errno));
    p->own = open_folder(p->to, HPCT_PRIVATE_FOLDER);
    if (p->own < 0)
        return fail_in(to, HPCT_PRIVATE_FOLDER);
    p->lock = openat(p->own, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->lock < 0)
        return fail_in(to, HPCT_PRIVATE_FOLDER "/lock");
    hpct_status status = take_lock(p);
    if (status != HPCT_OK)
        return status;
    p->report->touch_fd = p->lock;
    hpct_tree_remove(p->own, "incoming");
    p->incoming = open_folder(p->own, "incoming");
    return p->incoming < 0 ? fail_in(to, HPCT_PRIVATE_FOLDER "/incoming") : HPCT_OK;
}

static void finish(placing *p)
{
    p->report->touch_fd = -1;
    if (p->incoming >= 0) {
        close(p->incoming);
        hpct_tree_remove(p->own, "incoming");
    }
    if (p->lock >= 0)
        close(p->lock);
    if (p->own >= 0)
        close(p->own);
    if (p->to >= 0)
        close(p->to);
}

/* Where the open file really is, whatever links led to it. */
static hpct_status check_allowed(const hpct_place *place, int src, const char *name)
{
    char link[64], path[PATH_MAX], prefix[PATH_MAX];
    if (place->num_allowed == 0)
        return HPCT_OK;
    snprintf(link, sizeof link, "/proc/self/fd/%d", src);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: its place cannot be told: %s", name,
                         strerror(errno));
    path[size] = '\0';
    for (int i = 0; i < place->num_allowed; i++) {
        if (realpath(place->allowed[i], prefix) == NULL)
            continue;
        size_t length = strlen(prefix);
        if (strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return HPCT_OK;
    }
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s (%s) lies in no folder that may be staged from here; "
                     "stage_src= in plugstack.conf says which may",
                     name, path);
}

static hpct_status check_space(const placing *p, const hpct_tree_size *size)
{
    struct statvfs disk;
    char need[32], have[32];
    const hpct_place *place = p->place;
    if (place->max != 0 && size->bytes > place->max)
        return hpct_fail(HPCT_ERR_CONFIG, "%s are to be staged, but at most %s may be (stage_max)",
                         hpct_bytes_show(size->bytes, need, sizeof need),
                         hpct_bytes_show(place->max, have, sizeof have));
    if (fstatvfs(p->to, &disk) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", place->to, strerror(errno));
    uint64_t free_bytes = (uint64_t) disk.f_bavail * disk.f_frsize;
    if (size->blocks > free_bytes)
        return hpct_fail(HPCT_ERR_IO, "%s needs %s, but only %s are free there", place->to,
                         hpct_bytes_show(size->blocks, need, sizeof need),
                         hpct_bytes_show(free_bytes, have, sizeof have));
    if (disk.f_files != 0 && size->entries > disk.f_favail)
        return hpct_fail(HPCT_ERR_IO, "%s needs %llu files, but only %llu can still be made there",
                         place->to, (unsigned long long) size->entries,
                         (unsigned long long) disk.f_favail);
    return HPCT_OK;
}

/* The folder in which `dst` is to lie, made where it is missing; *last is dst's last part. */
static int open_above(const placing *p, const char *dst, const char **last)
{
    int at = dup(p->to);
    char part[NAME_MAX + 1];
    for (const char *slash; at >= 0 && (slash = strchr(dst, '/')) != NULL; dst = slash + 1) {
        memcpy(part, dst, (size_t) (slash - dst));
        part[slash - dst] = '\0';
        int next = open_folder(at, part);
        close(at);
        at = next;
    }
    *last = dst;
    return at;
}

/* Moves the finished copy to its name; what had that name goes. */
static hpct_status put(placing *p, const char *fresh, int above, const char *last, const char *dst)
{
    if (renameat(p->incoming, fresh, above, last) == 0)
        return HPCT_OK;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != EISDIR && errno != ENOTDIR)
        return fail_in(p->place->to, dst);
    char old[32];
    snprintf(old, sizeof old, "%s.old", fresh);
    if (renameat(above, last, p->incoming, old) != 0 ||
        renameat(p->incoming, fresh, above, last) != 0)
        return fail_in(p->place->to, dst);
    hpct_tree_remove(p->incoming, old);
    return HPCT_OK;
}

static hpct_status place_one(placing *p, int src, const hpct_stage_entry *entry, int number)
{
    char fresh[24];
    const char *last = NULL;
    hpct_status status = HPCT_OK;
    int above = open_above(p, entry->dst, &last);
    if (above < 0)
        return fail_in(p->place->to, entry->dst);
    if (hpct_tree_same(src, above, last, p->report)) {
        if (p->report->verbose)
            hpct_report_say("%s is at %s/%s already, unchanged", entry->src, p->place->to,
                            entry->dst);
        goto end;
    }
    snprintf(fresh, sizeof fresh, "%d", number);
    status = hpct_tree_copy(src, entry->src, p->incoming, fresh, p->report);
    if (status == HPCT_OK)
        status = hpct_report_tick(p->report, 0);
    if (status == HPCT_OK)
        status = put(p, fresh, above, last, entry->dst);
end:
    close(above);
    return status;
}

hpct_status hpct_place_all(const hpct_place *place, const hpct_stage_list *list,
                           hpct_report *report)
{
    placing p = {.place = place, .report = report, .to = -1, .own = -1, .incoming = -1, .lock = -1};
    hpct_status status = HPCT_OK;
    hpct_tree_size size = {0};
    int *sources = malloc((size_t) list->count * sizeof *sources);
    int opened = 0;
    if (sources == NULL)
        return hpct_fail_memory(0);
    for (; opened < list->count && status == HPCT_OK; opened++) {
        const char *name = list->entries[opened].src;
        int src = sources[opened] = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (src < 0)
            status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
        if (status == HPCT_OK)
            status = check_allowed(place, src, name);
    }
    if (status == HPCT_OK)
        status = prepare(&p);
    /* Only what is not there yet needs room. */
    for (int i = 0; i < list->count && status == HPCT_OK; i++) {
        const char *last = NULL;
        int above = open_above(&p, list->entries[i].dst, &last);
        if (above < 0)
            status = fail_in(place->to, list->entries[i].dst);
        else if (!hpct_tree_same(sources[i], above, last, report))
            status = hpct_tree_measure(sources[i], list->entries[i].src, report, &size);
        if (above >= 0)
            close(above);
    }
    if (status == HPCT_OK)
        status = check_space(&p, &size);
    report->total = size.bytes;
    for (int i = 0; i < list->count && status == HPCT_OK; i++)
        status = place_one(&p, sources[i], &list->entries[i], i);
    finish(&p);
    for (int i = 0; i < opened; i++) {
        if (sources[i] >= 0)
            close(sources[i]);
    }
    free(sources);
    return status;
}
