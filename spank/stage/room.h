/* spank/stage/room.h - whether there is room for what is to be staged: on the disk and, when the
 * folder lies in memory (tmpfs, ramfs), in the memory that the job has left. */
#ifndef HPCT_STAGE_ROOM_H
#define HPCT_STAGE_ROOM_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_room {
    uint64_t bytes;  /* that still fit */
    uint64_t files;  /* that can still be made; UINT64_MAX where nothing bounds them */
    bool memory;     /* the bound is the job's memory, not the disk */
    char name[4200]; /* of the folder, for messages */
} hpct_room;

/* The room in the open folder `fd`, named `name`. `memory`: what the job may use on this node in
 * all, 0 where nobody said; what its cgroup has left counts in any case. HPCT_ERR_IO. */
hpct_status hpct_room_measure(int fd, const char *name, uint64_t memory, hpct_room *room);

/* HPCT_ERR_IO, saying how much is needed and how much there is, when it does not fit. */
hpct_status hpct_room_check(const hpct_room *room, uint64_t bytes, uint64_t files);

/* What the cgroup that `self` (as /proc/self/cgroup) names, or one above it, leaves of its memory;
 * UINT64_MAX when none bounds it. `root`: where cgroup file systems are mounted (/sys/fs/cgroup).
 */
uint64_t hpct_room_cgroup(const char *self, const char *root);

#endif
