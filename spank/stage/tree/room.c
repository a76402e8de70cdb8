/* Free space: statvfs, type of the file system, cgroups (both versions). */
#include <config.h>

#include "spank/stage/tree/room.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "base/status.h"
#include "spank/spec/bytes.h"

/* Reads a file that contains one number; UINT64_MAX for "max" or anything else. */
static uint64_t read_number(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];
    unsigned long long value = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    bool found = fscanf(file, "%llu", &value) == 1;
    fclose(file);
    return found ? value : UINT64_MAX;
}

/* Reclaimable memory: cached files (pages of tmpfs are not). Version 1 counts those of descendant
 * groups separately, in "total_...". */
static uint64_t read_cache(const char *folder)
{
    char path[PATH_MAX + 64], key[64];
    unsigned long long value = 0, sum = 0, total = 0;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fscanf(file, "%63s %llu", key, &value) == 2) {
        if (strcmp(key, "inactive_file") == 0 || strcmp(key, "active_file") == 0)
            sum += value;
        if (strcmp(key, "total_inactive_file") == 0 || strcmp(key, "total_active_file") == 0)
            total += value;
    }
    fclose(file);
    return total > sum ? total : sum;
}

static uint64_t left_in(const char *folder, const char *limit_name, const char *used_name)
{
    uint64_t limit = read_number(folder, limit_name), used = read_number(folder, used_name);
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    uint64_t cache = read_cache(folder);
    used -= cache < used ? cache : used;
    return limit > used ? limit - used : 0;
}

/* The smallest remainder from the cgroup up to the root. */
static uint64_t climb(const char *root, const char *below, const char *path, const char *limit,
                      const char *used)
{
    char folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    size_t keep = (size_t) snprintf(folder, sizeof folder, "%s%s", root, below);
    if (keep >= sizeof folder || strlen(path) >= sizeof folder - keep)
        return UINT64_MAX;
    strcpy(folder + keep, path);
    for (;;) {
        uint64_t left = left_in(folder, limit, used);
        if (left < least)
            least = left;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t) (slash - folder) < keep || strlen(folder) <= keep)
            return least;
        *slash = '\0';
    }
}

uint64_t hpct_room_cgroup(const char *self, const char *root)
{
    char line[PATH_MAX + 64];
    uint64_t least = UINT64_MAX, left = UINT64_MAX;
    FILE *file = fopen(self, "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *path = list == NULL ? NULL : strchr(list + 1, ':');
        if (path == NULL)
            continue;
        *path++ = '\0';
        if (list[1] == '\0')
            left = climb(root, "", path, "memory.max", "memory.current");
        else if (strcmp(list + 1, "memory") == 0)
            left = climb(root, "/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes");
        if (left < least)
            least = left;
    }
    fclose(file);
    return least;
}

static uint64_t available_memory(void)
{
    char line[128];
    unsigned long long value = 0;
    uint64_t found = UINT64_MAX;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "MemAvailable: %llu kB", &value) == 1)
            found = (uint64_t) value * 1024;
    }
    fclose(file);
    return found;
}

hpct_status hpct_room_measure(int fd, const char *name, uint64_t memory, hpct_room *room)
{
    struct statvfs disk;
    struct statfs kind;
    if (fstatvfs(fd, &disk) != 0 || fstatfs(fd, &kind) != 0)
        return hpct_fail(HPCT_ERR_IO, "%s: %s", name, strerror(errno));
    *room = (hpct_room){.bytes = (uint64_t) disk.f_bavail * disk.f_frsize, .files = UINT64_MAX};
    snprintf(room->name, sizeof room->name, "%s", name);
    if (disk.f_files != 0) /* 0: the file system creates inodes on demand */
        room->files = disk.f_favail;
    if (kind.f_type != TMPFS_MAGIC && (unsigned long) kind.f_type != RAMFS_MAGIC)
        return HPCT_OK;
    if ((unsigned long) kind.f_type == RAMFS_MAGIC || disk.f_blocks == 0)
        room->bytes = UINT64_MAX; /* limited by memory only */
    const uint64_t bounds[] = {memory == 0 ? UINT64_MAX : memory, available_memory(),
                               hpct_room_cgroup("/proc/self/cgroup", "/sys/fs/cgroup")};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (bounds[i] < room->bytes) {
            room->bytes = bounds[i];
            room->memory = true;
        }
    }
    return HPCT_OK;
}

hpct_status hpct_room_check(const hpct_room *room, uint64_t bytes, uint64_t files)
{
    char need[32], have[32];
    if (bytes > room->bytes && room->memory)
        return hpct_fail(HPCT_ERR_IO,
                         "%s needs %s and lies in memory, of which the job has only %s: ask for "
                         "more with --mem",
                         room->name, hpct_bytes_show(bytes, need, sizeof need),
                         hpct_bytes_show(room->bytes, have, sizeof have));
    if (bytes > room->bytes)
        return hpct_fail(HPCT_ERR_IO, "%s needs %s, but only %s are free there", room->name,
                         hpct_bytes_show(bytes, need, sizeof need),
                         hpct_bytes_show(room->bytes, have, sizeof have));
    if (files > room->files)
        return hpct_fail(HPCT_ERR_IO, "%s needs %llu files, but only %llu can still be made there",
                         room->name, (unsigned long long) files, (unsigned long long) room->files);
    return HPCT_OK;
}
