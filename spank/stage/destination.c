/* Opens folders, locks, renames; measures free space: statvfs, type of the file system, memory. */
#include <config.h>

#include "spank/stage/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/status.h"
#include "spank/spec/bytes.h"
#include "spank/spec/entry.h"
#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/hash.h"

/* ---- space ---- */

/* What the job may still use of the memory. */
static uint64_t find_memory(uint64_t limit)
{
    hpct_memory_level levels[HPCT_MEMORY_LEVELS];
    const int count = hpct_memory_levels_in(HPCT_PROC, HPCT_CGROUPS, levels);
    uint64_t least = limit == 0 ? UINT64_MAX : limit;
    for (int i = 0; i < count; i++) {
        const uint64_t left = levels[i].left + levels[i].active;
        least = left < least ? left : least;
    }
    return least;
}

hpct_status hpct_stage_room_measure(int fd, const char *name, uint64_t memory,
                                    hpct_stage_room *room)
{
    struct statvfs disk;
    struct statfs kind;
    if (fstatvfs(fd, &disk) != 0 || fstatfs(fd, &kind) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", name, strerror(errno));
    *room =
        (hpct_stage_room){.bytes = (uint64_t) disk.f_bavail * disk.f_frsize, .files = UINT64_MAX};
    snprintf(room->name, sizeof room->name, "%s", name);
    if (disk.f_files != 0) /* 0: the file system creates inodes on demand */
        room->files = disk.f_favail;
    if (kind.f_type != TMPFS_MAGIC && (unsigned long) kind.f_type != RAMFS_MAGIC)
        return HPCT_OK;
    if ((unsigned long) kind.f_type == RAMFS_MAGIC || disk.f_blocks == 0)
        room->bytes = UINT64_MAX; /* limited by memory only */
    const uint64_t left = find_memory(memory);
    room->memory = left < room->bytes;
    room->bytes = room->memory ? left : room->bytes;
    return HPCT_OK;
}

hpct_status hpct_stage_room_check(const hpct_stage_room *room, uint64_t bytes, uint64_t files)
{
    char need[32], have[32];
    if (bytes > room->bytes && room->memory)
        return hpct_fail(HPCT_ERR_IO,
                         "%s needs %s and lies in memory, of which the job has only %s: ask for "
                         "more with --mem",
                         room->name, hpct_spec_bytes_show(bytes, need, sizeof need),
                         hpct_spec_bytes_show(room->bytes, have, sizeof have));
    if (bytes > room->bytes)
        return hpct_fail(HPCT_ERR_IO, "%s needs %s, but only %s are free there", room->name,
                         hpct_spec_bytes_show(bytes, need, sizeof need),
                         hpct_spec_bytes_show(room->bytes, have, sizeof have));
    if (files > room->files)
        return hpct_fail(HPCT_ERR_IO, "%s needs %llu files, but only %llu can still be made there",
                         room->name, (unsigned long long) files, (unsigned long long) room->files);
    return HPCT_OK;
}

/* ---- folders and the lock ---- */

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

hpct_status hpct_stage_destination_open(hpct_stage_destination *d, const char *path,
                                        hpct_stage_report *report)
{
    *d = (hpct_stage_destination){.path = path,
                                  .report = report,
                                  .to = -1,
                                  .own = -1,
                                  .staged = -1,
                                  .incoming = -1,
                                  .lock = -1};
    d->to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->to < 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", path, strerror(errno));
    d->own = open_folder(d->to, HPCT_SPEC_PRIVATE_FOLDER);
    if (d->own < 0)
        return fail_in(path, HPCT_SPEC_PRIVATE_FOLDER);
    d->lock = openat(d->own, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return d->lock < 0 ? fail_in(path, HPCT_SPEC_PRIVATE_FOLDER "/lock") : HPCT_OK;
}

hpct_status hpct_stage_destination_try_lock(hpct_stage_destination *d, bool *mine)
{
    *mine = flock(d->lock, LOCK_EX | LOCK_NB) == 0;
    if (*mine || errno == EWOULDBLOCK || errno == EINTR)
        return HPCT_OK;
    return fail_in(d->path, HPCT_SPEC_PRIVATE_FOLDER "/lock");
}

void hpct_stage_destination_unlock(hpct_stage_destination *d)
{
    flock(d->lock, LOCK_UN);
}

bool hpct_stage_destination_holder_moved(hpct_stage_destination *d)
{
    struct stat info;
    if (fstat(d->lock, &info) != 0 || memcmp(&d->touched, &info.st_mtim, sizeof d->touched) == 0)
        return false;
    d->touched = info.st_mtim;
    return true;
}

hpct_status hpct_stage_destination_prepare(hpct_stage_destination *d)
{
    d->report->touch_fd = d->lock;
    hpct_stage_tree_remove(d->own, "incoming", d->report);
    d->incoming = open_folder(d->own, "incoming");
    d->staged = open_folder(d->own, "staged");
    return d->incoming < 0 || d->staged < 0 ? fail_in(d->path, HPCT_SPEC_PRIVATE_FOLDER) : HPCT_OK;
}

void hpct_stage_destination_close(hpct_stage_destination *d, bool stopped)
{
    const int folders[] = {d->incoming, d->staged, d->lock, d->own, d->to};
    if (d->path == NULL) /* never opened */
        return;
    d->report->touch_fd = -1;
    if (d->incoming >= 0 && stopped)
        hpct_stage_tree_remove_within(d->own, "incoming", CLEAN_SECONDS);
    else if (d->incoming >= 0)
        hpct_stage_tree_remove(d->own, "incoming", d->report);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        hpct_fd_close(folders[i]);
}

/* Opens the folder of `dst`, creating it if it is missing; *last is the last component of `dst`. */
static int open_above(const hpct_stage_destination *d, const char *dst, const char **last)
{
    int at = dup(d->to);
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
static hpct_status replace(hpct_stage_destination *d, const char *name, int above, const char *last,
                           const char *dst)
{
    if (move(d->incoming, name, above, last) == 0)
        return HPCT_OK;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != EISDIR && errno != ENOTDIR)
        return fail_in(d->path, dst);
    char old[32];
    snprintf(old, sizeof old, "%s.old", name);
    if (move(above, last, d->incoming, old) != 0)
        return fail_in(d->path, dst);
    if (move(d->incoming, name, above, last) != 0) {
        hpct_status status = fail_in(d->path, dst);
        move(d->incoming, old, above, last);
        return status;
    }
    hpct_stage_tree_remove(d->incoming, old, d->report);
    return HPCT_OK;
}

/* Name of the manifest of `dst`, from the hash of that name. */
typedef char manifest_name[32];

static const char *name_manifest(const char *dst, manifest_name name)
{
    snprintf(name, sizeof(manifest_name), "%016llx",
             (unsigned long long) hpct_stage_hash(dst, strlen(dst)));
    return name;
}

bool hpct_stage_destination_has(hpct_stage_destination *d, const char *dst, uint64_t digest)
{
    hpct_stage_manifest *manifest = NULL;
    manifest_name name;
    const char *last = NULL;
    bool has = false;
    int above = open_above(d, dst, &last);
    if (above < 0)
        return false;
    if (faccessat(above, last, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        has = hpct_stage_manifest_load(&manifest, d->staged, name_manifest(dst, name), digest) ==
                  HPCT_OK &&
              hpct_stage_manifest_holds(manifest, above, last, d->report);
        if (!has && d->report->verbose)
            hpct_stage_report_say("%s/%s is staged again: %s", d->path, dst, hpct_last_error());
    }
    hpct_stage_manifest_free(manifest);
    close(above);
    return has;
}

hpct_status hpct_stage_copy_begin(hpct_stage_copy *copy, const char *src, int number)
{
    *copy = (hpct_stage_copy){.manifest = hpct_stage_manifest_new()};
    if (copy->manifest == NULL)
        return hpct_fail_memory(0);
    snprintf(copy->name, sizeof copy->name, "%d", number);
    copy->options = (hpct_stage_writer_options){.name = src, .manifest = copy->manifest};
    return HPCT_OK;
}

hpct_status hpct_stage_copy_rename(hpct_stage_copy *copy, hpct_stage_destination *d,
                                   const char *dst, uint64_t digest)
{
    manifest_name manifest;
    const char *last = NULL;
    int above = open_above(d, dst, &last);
    if (above < 0)
        return fail_in(d->path, dst);
    unlinkat(d->staged, name_manifest(dst, manifest), 0);
    hpct_status status = replace(d, copy->name, above, last, dst);
    if (status == HPCT_OK &&
        hpct_stage_manifest_save(copy->manifest, d->staged, manifest, digest) != HPCT_OK)
        hpct_stage_report_say("%s: %s; a later step will stage it again", dst, hpct_last_error());
    close(above);
    return status;
}

void hpct_stage_copy_end(hpct_stage_copy *copy)
{
    hpct_stage_manifest_free(copy->manifest);
    copy->manifest = NULL;
}
