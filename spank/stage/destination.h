/* spank/stage/destination.h - the folder TO: its lock, its space, copies under temporary names in
 * TO/.hpc-train/incoming, and their final names. Only the holder of the lock uses `incoming`, and
 * the next holder empties it. */
#ifndef HPCT_SPANK_STAGE_DESTINATION_H
#define HPCT_SPANK_STAGE_DESTINATION_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#include "spank/stage/tree/manifest.h"
#include "spank/stage/tree/report.h"
#include "spank/stage/tree/writer.h"

typedef struct hpct_stage_room {
    uint64_t bytes;  /* bytes left; UINT64_MAX if unlimited */
    uint64_t files;  /* inodes left; UINT64_MAX if unlimited */
    bool memory;     /* limited by the job's memory, not the disk */
    char name[4200]; /* path of the folder, for messages */
} hpct_stage_room;

/* Free space in the open folder `fd`, called `name`. `memory`: the job's limit on this node, 0 if
 * unknown; its cgroup's remainder counts in any case. Returns HPCT_ERR_IO. */
hpct_status hpct_stage_room_measure(int fd, const char *name, uint64_t memory,
                                    hpct_stage_room *room);

/* Returns HPCT_ERR_IO, with required and free space, if it does not fit. */
hpct_status hpct_stage_room_check(const hpct_stage_room *room, uint64_t bytes, uint64_t files);

#define HPCT_STAGE_LOCK_SECONDS 300 /* timeout for a lock holder without progress */

typedef struct hpct_stage_destination {
    const char *path;
    hpct_stage_report *report;
    hpct_stage_room room;
    int to, own, staged, incoming, lock; /* TO, TO/.hpc-train, …/staged, …/incoming, …/lock; -1: not
                                            open */
    struct timespec touched;             /* when the lock's holder last showed progress */
} hpct_stage_destination;

/* Opens TO and its lock. Closed by hpct_stage_destination_close in any case. */
hpct_status hpct_stage_destination_open(hpct_stage_destination *destination, const char *path,
                                        hpct_stage_report *report);

/* One attempt; *mine: this process holds the lock. */
hpct_status hpct_stage_destination_try_lock(hpct_stage_destination *destination, bool *mine);
void hpct_stage_destination_unlock(hpct_stage_destination *destination);

/* Whether the lock's holder showed progress since the last call: it touches the lock file. */
bool hpct_stage_destination_holder_moved(hpct_stage_destination *destination);

/* With the lock: empties `incoming`. */
hpct_status hpct_stage_destination_prepare(hpct_stage_destination *destination);

/* Removes unfinished copies; of those of a stopped run what a short time allows. Zero-initialized
 * and never opened is allowed. */
void hpct_stage_destination_close(hpct_stage_destination *destination, bool stopped);

/* Whether an earlier run staged `dst` from the source of this digest and the copy is unchanged;
 * prints why not if verbose. */
bool hpct_stage_destination_has(hpct_stage_destination *destination, const char *dst,
                                uint64_t digest);

/* A copy without its final name: a writer with these options for the folder `incoming` and `name`
 * writes it; when that has finished, hpct_stage_copy_rename. End it with hpct_stage_copy_end in any
 * case. */
typedef struct hpct_stage_copy {
    char name[24];
    hpct_stage_manifest *manifest; /* NULL: there is none */
    hpct_stage_writer_options options;
} hpct_stage_copy;

hpct_status hpct_stage_copy_begin(hpct_stage_copy *copy, const char *src, int number);

/* Renames it to TO/DST, removing what is there, and saves its manifest. */
hpct_status hpct_stage_copy_rename(hpct_stage_copy *copy, hpct_stage_destination *destination,
                                   const char *dst, uint64_t digest);
void hpct_stage_copy_end(hpct_stage_copy *copy);

#endif
