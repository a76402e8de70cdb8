/* Fixed-size notes appended to "copied" in the folder of the records, each with one write. A copy
 * is known by its inode with size and time, as inode numbers are used again. (A FUSE file system
 * that assigns new ones makes copies unknown.) */
#include <config.h>

#include "spank/stage/out/out_ours.h"

#include <fcntl.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fnv.h"
#include "spank/spec/out_record.h"

typedef struct note {
    uint64_t names; /* hash of source and destination */
    uint64_t inode;
    int64_t size, seconds, nanoseconds;
} note;

#define NOTES 256 /* read at once */

struct hpct_stage_out_ours {
    int fd;
    off_t read;  /* bytes that are in `known` */
    void *known; /* notes, a tree (tsearch) */
};

/* With the terminating zero. */
static uint64_t hash(uint64_t value, const char *name)
{
    return hpct_fnv(value, name, strlen(name) + 1);
}

static note note_of(const char *name, const char *to, const struct stat *info)
{
    return (note){.names = hash(hash(HPCT_FNV_START, name), to),
                  .inode = info->st_ino,
                  .size = info->st_size,
                  .seconds = info->st_mtim.tv_sec,
                  .nanoseconds = info->st_mtim.tv_nsec};
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(note));
}

hpct_stage_out_ours *hpct_stage_out_ours_open(const char *from)
{
    hpct_stage_out_ours *ours = calloc(1, sizeof *ours);
    if (ours == NULL)
        return NULL;
    int folder = hpct_spec_records_open(from);
    ours->fd = openat(folder, "copied",
                      O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (folder >= 0)
        close(folder);
    if (ours->fd >= 0)
        return ours;
    free(ours);
    return NULL;
}

void hpct_stage_out_ours_close(hpct_stage_out_ours *ours)
{
    if (ours == NULL)
        return;
    close(ours->fd);
    tdestroy(ours->known, free);
    free(ours);
}

void hpct_stage_out_ours_add(hpct_stage_out_ours *ours, const char *name, const char *to,
                             const struct stat *info)
{
    const note own = note_of(name, to, info);
    if (ours != NULL && write(ours->fd, &own, sizeof own) < 0)
        return; /* no space left: a later version of this copy will be kept beside it */
}

static void remember(hpct_stage_out_ours *ours, const note *one)
{
    note *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return;
    *copy = *one;
    const note *const *there = tsearch(copy, &ours->known, compare);
    if (there == NULL || *there != copy)
        free(copy);
}

/* What has been added since, also by other steps. */
static void read_more(hpct_stage_out_ours *ours)
{
    note notes[NOTES];
    ssize_t got;
    while ((got = pread(ours->fd, notes, sizeof notes, ours->read)) >= (ssize_t) sizeof *notes) {
        size_t count = (size_t) got / sizeof *notes;
        for (size_t i = 0; i < count; i++)
            remember(ours, &notes[i]);
        ours->read += (off_t) (count * sizeof *notes);
    }
}

bool hpct_stage_out_ours_has(hpct_stage_out_ours *ours, const char *name, const char *to,
                             const struct stat *info)
{
    const note wanted = note_of(name, to, info);
    if (ours == NULL)
        return false;
    if (tfind(&wanted, &ours->known, compare) != NULL)
        return true;
    read_more(ours);
    return tfind(&wanted, &ours->known, compare) != NULL;
}
