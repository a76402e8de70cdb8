/* Stages the entries. Unfinished copies are in TO/.hpc-train/incoming, which only the holder of the
 * lock uses and which the next holder empties. */
#include <config.h>

#include "spank/stage/place_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/spec/bytes.h"
#include "spank/stage/net/broadcast_auth.h"
#include "spank/stage/tree/copy.h"
#include "spank/stage/tree/extract.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/tree.h"

#define CLEAN_SECONDS 0.4 /* after a signal; the next run or the epilog removes the rest */

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

/* Waits for the lock. Its holder touches the lock file regularly; the mtime shows that it makes
 * progress. */
static hpct_status take_lock(hpct_placing *p)
{
    struct stat info;
    struct timespec seen = {0};
    for (int idle = 0; flock(p->lock, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail_in(p->place->to, HPCT_PRIVATE_FOLDER "/lock");
        hpct_status status = hpct_report_stopped();
        if (status != HPCT_OK)
            return status;
        if (idle == 20)
            hpct_report_say("another step of the job stages to %s: waiting for it", p->place->to);
        if (fstat(p->lock, &info) == 0 && memcmp(&seen, &info.st_mtim, sizeof seen) != 0) {
            seen = info.st_mtim;
            idle = idle > 20 ? 21 : idle; /* print only once */
            status = hpct_report_tick(p->report, 0);
            if (status != HPCT_OK)
                return status;
        }
        if (++idle > HPCT_LOCK_SECONDS * 10)
            return hpct_fail(
                HPCT_ERR_IO,
                "another step of the job stages to %s, without progress for %d seconds",
                p->place->to, HPCT_LOCK_SECONDS);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return HPCT_OK;
}

bool hpct_place_try_lock(hpct_placing *p)
{
    return flock(p->lock, LOCK_EX | LOCK_NB) == 0;
}

void hpct_place_unlock(hpct_placing *p)
{
    flock(p->lock, LOCK_UN);
}

/* With the nodes of `b`; NULL: this node alone. */
static hpct_status prepare(hpct_placing *p, hpct_broadcast *b)
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
    HPCT_TRY(b != NULL ? hpct_place_lock_together(p, b) : take_lock(p));
    p->report->touch_fd = p->lock;
    hpct_tree_remove(p->own, "incoming", p->report);
    p->incoming = open_folder(p->own, "incoming");
    p->staged = open_folder(p->own, "staged");
    return p->incoming < 0 || p->staged < 0 ? fail_in(to, HPCT_PRIVATE_FOLDER) : HPCT_OK;
}

static void finish(hpct_placing *p, bool stopped)
{
    p->report->touch_fd = -1;
    if (p->incoming >= 0) {
        close(p->incoming);
        if (stopped)
            hpct_tree_remove_within(p->own, "incoming", CLEAN_SECONDS);
        else
            hpct_tree_remove(p->own, "incoming", p->report);
    }
    if (p->staged >= 0)
        close(p->staged);
    if (p->lock >= 0)
        close(p->lock);
    if (p->own >= 0)
        close(p->own);
    if (p->to >= 0)
        close(p->to);
}

/* Checks the real path of the open file, independent of links. */
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

/* Checks that the missing entries fit. An archive's content is counted while it is written. */
hpct_status hpct_place_check_space(hpct_placing *p, const hpct_source *sources, int count)
{
    const hpct_place *place = p->place;
    hpct_walk_totals sum = {0};
    char need[32], have[32];
    bool known = true;
    for (int i = 0; i < count; i++) {
        const hpct_walk_totals *one = &sources[i].totals;
        if (sources[i].there)
            continue;
        if (sources[i].extract) {
            known = false;
            sum.blocks += 4096; /* the minimum: reports at least a full disk */
            continue;
        }
        sum.bytes += one->bytes;
        sum.blocks += one->blocks;
        sum.entries += one->entries;
    }
    if (place->max != 0 && sum.bytes > place->max)
        return hpct_fail(HPCT_ERR_CONFIG, "%s are to be staged, but at most %s may be (stage_max)",
                         hpct_bytes_show(sum.bytes, need, sizeof need),
                         hpct_bytes_show(place->max, have, sizeof have));
    p->report->total = known ? sum.bytes : 0;
    p->report->total_files = known ? sum.entries : 0;
    HPCT_TRY(hpct_room_measure(p->to, place->to, place->memory, &p->room));
    return hpct_room_check(&p->room, sum.blocks, sum.entries);
}

/* Limit for an archive's contents: the rest of stage_max and of the free space. */
static uint64_t bytes_left(const hpct_placing *p)
{
    uint64_t used = p->report->bytes, left = p->room.bytes;
    if (p->place->max != 0 && p->place->max < left)
        left = p->place->max;
    return left > used ? left - used : 1;
}

/* Opens the folder of `dst`, creating it if it is missing; *last is the last component of `dst`. */
static int open_above(const hpct_placing *p, const char *dst, const char **last)
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

/* Renames. Moving a folder to another parent changes its ".." and so needs write permission, which
 * is granted temporarily. */
static int move(int from, const char *name, int to, const char *new_name)
{
    struct stat info;
    if (renameat(from, name, to, new_name) == 0)
        return 0;
    if (errno != EACCES || fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(info.st_mode) || (info.st_mode & S_IWUSR) != 0)
        return -1;
    mode_t mode = info.st_mode & 07777;
    if (fchmodat(from, name, mode | S_IWUSR, 0) != 0)
        return -1;
    bool moved = renameat(from, name, to, new_name) == 0;
    int error = errno;
    if (fchmodat(moved ? to : from, moved ? new_name : name, mode, 0) != 0 && moved)
        return -1;
    errno = error;
    return moved ? 0 : -1;
}

/* Renames the finished copy to its final name; an existing file or folder of that name is
 * removed. */
static hpct_status put(hpct_placing *p, const char *fresh, int above, const char *last,
                       const char *dst)
{
    if (move(p->incoming, fresh, above, last) == 0)
        return HPCT_OK;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != EISDIR && errno != ENOTDIR)
        return fail_in(p->place->to, dst);
    char old[32];
    snprintf(old, sizeof old, "%s.old", fresh);
    if (move(above, last, p->incoming, old) != 0)
        return fail_in(p->place->to, dst);
    if (move(p->incoming, fresh, above, last) != 0) {
        hpct_status status = fail_in(p->place->to, dst);
        move(p->incoming, old, above, last);
        return status;
    }
    hpct_tree_remove(p->incoming, old, p->report);
    return HPCT_OK;
}

hpct_status hpct_place_fresh(hpct_placing *p, hpct_source *src, int number, hpct_fresh *fresh)
{
    *fresh = (hpct_fresh){.source = src, .manifest = hpct_manifest_new()};
    if (fresh->manifest == NULL)
        return hpct_fail_memory(0);
    snprintf(fresh->name, sizeof fresh->name, "%d", number);
    fresh->options = (hpct_writer_options){.name = src->entry->src, .manifest = fresh->manifest};
    if (src->extract) {
        fresh->options.loose = true;
        fresh->options.max_bytes = bytes_left(p);
        fresh->options.max_entries = p->room.files == UINT64_MAX ? 0 : p->room.files;
    }
    return HPCT_OK;
}

hpct_status hpct_place_fresh_put(hpct_placing *p, hpct_fresh *fresh)
{
    const hpct_source *src = fresh->source;
    const char *last = NULL;
    hpct_status status = HPCT_OK;
    int above = open_above(p, src->entry->dst, &last);
    if (above < 0)
        return fail_in(p->place->to, src->entry->dst);
    unlinkat(p->staged, src->manifest, 0);
    status = put(p, fresh->name, above, last, src->entry->dst);
    if (status == HPCT_OK &&
        hpct_manifest_save(fresh->manifest, p->staged, src->manifest, src->digest) != HPCT_OK)
        hpct_report_say("%s: %s; a later step will stage it again", src->entry->dst,
                        hpct_last_error());
    close(above);
    return status;
}

void hpct_place_fresh_end(hpct_fresh *fresh)
{
    hpct_manifest_free(fresh->manifest);
    fresh->manifest = NULL;
}

static hpct_status make(hpct_placing *p, const hpct_fresh *fresh)
{
    hpct_writer *writer = NULL;
    hpct_source *src = fresh->source;
    hpct_status status = hpct_writer_open(&writer, p->incoming, fresh->name, &fresh->options);
    if (status != HPCT_OK)
        return status;
    if (src->extract) {
        hpct_hands *hands = NULL;
        hpct_taker taker;
        status = hpct_hands_open(&hands, writer, p->report, &taker);
        if (status == HPCT_OK)
            status = hpct_extract_file(src->walk, src->entry->src, &taker, p->report);
        hpct_hands_close(hands);
    } else {
        status = hpct_copy_tree(src->walk, writer, p->report);
    }
    if (status == HPCT_OK)
        status = hpct_writer_finish(writer);
    hpct_writer_close(writer);
    return status == HPCT_OK ? hpct_report_tick(p->report, 0) : status;
}

hpct_status hpct_place_one(hpct_placing *p, hpct_source *src, int number)
{
    hpct_fresh fresh;
    hpct_status status = hpct_place_fresh(p, src, number, &fresh);
    if (status == HPCT_OK)
        status = make(p, &fresh);
    if (status == HPCT_OK)
        status = hpct_place_fresh_put(p, &fresh);
    hpct_place_fresh_end(&fresh);
    return status;
}

/* Whether an earlier run staged the same source and the copy is unchanged. */
static bool is_there(hpct_placing *p, const hpct_source *src)
{
    hpct_manifest *manifest = NULL;
    const char *last = NULL;
    bool there = false;
    int above = open_above(p, src->entry->dst, &last);
    if (above < 0)
        return false;
    if (faccessat(above, last, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        there = hpct_manifest_load(&manifest, p->staged, src->manifest, src->digest) == HPCT_OK &&
                hpct_manifest_holds(manifest, above, last, p->report);
        if (!there && p->report->verbose)
            hpct_report_say("%s/%s is staged again: %s", p->place->to, src->entry->dst,
                            hpct_last_error());
    }
    hpct_manifest_free(manifest);
    close(above);
    return there;
}

void hpct_place_look(hpct_placing *p, hpct_source *src)
{
    snprintf(src->manifest, sizeof src->manifest, "%016llx",
             (unsigned long long) hpct_hash(src->entry->dst, strlen(src->entry->dst)));
    src->there = is_there(p, src);
    if (src->there && !p->report->quiet)
        hpct_report_say("%s is at %s/%s already, unchanged", src->entry->src, p->place->to,
                        src->entry->dst);
}

static hpct_status follow_allowed(void *context, int fd, const char *name)
{
    return check_allowed(context, fd, name);
}

/* Not `needed`: another node reads the source, and it may be missing on this one. */
static hpct_status open_source(const hpct_place *place, hpct_source *src, bool needed)
{
    const char *name = src->entry->src;
    src->fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (src->fd < 0 && !needed)
        return HPCT_OK;
    if (src->fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
    return check_allowed(place, src->fd, name);
}

hpct_status hpct_place_list(hpct_placing *p, hpct_source *src)
{
    const hpct_walk_options options = {.follow = p->place->follow,
                                       .allowed = follow_allowed,
                                       .context = (void *) (uintptr_t) p->place};
    hpct_item root;
    HPCT_TRY(hpct_walk_open(&src->walk, src->fd, src->entry->src, &options, p->report));
    hpct_walk_item(src->walk, 0, &root, NULL, NULL);
    src->extract = p->place->mode.extract && root.kind == HPCT_ITEM_FILE;
    src->totals = hpct_walk_sum(src->walk);
    const uint64_t how[] = {hpct_walk_digest(src->walk), src->extract};
    src->digest = hpct_hash(how, sizeof how);
    hpct_place_look(p, src);
    return hpct_report_tick(p->report, 0);
}

static hpct_status place_alone(hpct_placing *p, hpct_source *sources, int count)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count && status == HPCT_OK; i++)
        status = open_source(p->place, &sources[i], true);
    if (status == HPCT_OK)
        status = prepare(p, NULL);
    for (int i = 0; i < count && status == HPCT_OK; i++)
        status = hpct_place_list(p, &sources[i]);
    if (status == HPCT_OK)
        status = hpct_place_check_space(p, sources, count);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        if (!sources[i].there)
            status = hpct_place_one(p, &sources[i], i);
    }
    return status;
}

/* "rchar" of /proc/self/io: bytes read from all files. */
static unsigned long long bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *io = fopen("/proc/self/io", "re");
    if (io == NULL || fscanf(io, "rchar: %llu", &bytes) != 1)
        bytes = 0;
    if (io != NULL)
        fclose(io);
    return bytes;
}

static void say_traffic(hpct_placing *p, hpct_broadcast *b)
{
    uint64_t received = 0, sent = 0;
    hpct_broadcast_traffic(b, &received, &sent);
    if (p->report->verbose && received + sent > 0)
        hpct_report_say("%llu bytes received from other nodes, %llu sent to them; %llu read from "
                        "files, the check of what was written included",
                        (unsigned long long) received, (unsigned long long) sent, bytes_read());
}

/* The lock is taken after all nodes have connected, so that late nodes do not make other steps
 * wait. */
static hpct_status place_with_team(hpct_placing *p, hpct_source *sources, int count)
{
    hpct_broadcast *b = NULL;
    bool elsewhere = false;
    if (p->place->team.index != 0 && !p->report->verbose)
        p->report->quiet = true; /* the first node prints for all */
    hpct_status status = hpct_broadcast_open(&p->place->team, p->report, &b);
    if (status != HPCT_OK)
        return status;
    for (int i = 0; i < count && status == HPCT_OK; i++)
        status = open_source(p->place, &sources[i], p->place->team.index == 0);
    if (status == HPCT_OK)
        status = hpct_broadcast_meet(b);
    if (status == HPCT_OK)
        status = prepare(p, b);
    if (status == HPCT_OK)
        status = hpct_place_together(p, b, sources, count);
    if (status != HPCT_OK) {
        hpct_broadcast_fail(b, status, hpct_last_error());
        status = hpct_broadcast_failure(b, &elsewhere); /* the first failure of all nodes */
    }
    /* only the failed node and the first one print the failure */
    p->report->told = elsewhere && p->place->team.index != 0 && !p->report->verbose;
    if (status == HPCT_OK)
        say_traffic(p, b);
    hpct_broadcast_close(b);
    return status;
}

hpct_status hpct_place_all(const hpct_place *place, const hpct_stage_list *list,
                           hpct_report *report)
{
    hpct_placing p = {.place = place,
                      .report = report,
                      .to = -1,
                      .own = -1,
                      .staged = -1,
                      .incoming = -1,
                      .lock = -1};
    bool alone = place->team.count < 2 || place->mode.way == HPCT_WAY_COPY;
    hpct_status status = HPCT_OK;
    hpct_source *sources = calloc((size_t) list->count, sizeof *sources);
    if (sources == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < list->count; i++)
        sources[i] = (hpct_source){.entry = &list->entries[i], .fd = -1};
    if (alone)
        status = place_alone(&p, sources, list->count);
    else if (place->team.key != NULL || hpct_auth_is_here())
        status = place_with_team(&p, sources, list->count);
    else /* no fallback to copying: other nodes may have a munged and would wait for this one */
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "this step has no key and no munged answers here, and nodes can only "
                           "send data to each other with one of the two: start munged, or use "
                           "--hpc-train-stage-mode=copy");
    finish(&p, status == HPCT_ERR_STOPPED);
    for (int i = 0; i < list->count; i++) {
        hpct_walk_close(sources[i].walk);
        if (sources[i].fd >= 0)
            close(sources[i].fd);
    }
    free(sources);
    return status;
}
