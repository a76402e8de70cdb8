/* spank/stage/tree/room.h - whether the data to stage fits: on the disk and, if the folder is in
 * memory (tmpfs, ramfs), into the job's remaining memory. */
#ifndef HPCT_SPANK_STAGE_TREE_ROOM_H
#define HPCT_SPANK_STAGE_TREE_ROOM_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_room {
    uint64_t bytes;  /* bytes left; UINT64_MAX if unlimited */
    uint64_t files;  /* inodes left; UINT64_MAX if unlimited */
    bool memory;     /* limited by the job's memory, not the disk */
    char name[4200]; /* path of the folder, for messages */
} hpct_room;

/* Free space in the open folder `fd`, called `name`. `memory`: the job's limit on this node, 0 if
 * unknown; its cgroup's remainder counts in any case. Returns HPCT_ERR_IO. */
hpct_status hpct_room_measure(int fd, const char *name, uint64_t memory, hpct_room *room);

/* Returns HPCT_ERR_IO, with required and free space, if it does not fit. */
hpct_status hpct_room_check(const hpct_room *room, uint64_t bytes, uint64_t files);

/* Remaining memory of the cgroup named in `self` (as /proc/self/cgroup) or an ancestor; UINT64_MAX
 * if unlimited. `root`: mount point of cgroups (/sys/fs/cgroup). */
uint64_t hpct_room_cgroup(const char *self, const char *root);

#endif
