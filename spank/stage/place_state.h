/* spank/stage/place_state.h - internals of staging, for place*.c only. */
#ifndef HPCT_STAGE_PLACE_STATE_H
#define HPCT_STAGE_PLACE_STATE_H

#include "spank/stage/net/broadcast.h"
#include "spank/stage/place.h"
#include "spank/stage/tree/manifest.h"
#include "spank/stage/tree/room.h"
#include "spank/stage/tree/walk.h"
#include "spank/stage/tree/writer.h"

#define HPCT_LOCK_SECONDS 300 /* timeout for a lock holder without progress */

/* One entry of the list. */
typedef struct hpct_source {
    const hpct_stage_entry *entry;
    int fd;          /* -1: not visible on this node (another node reads it) */
    hpct_walk *walk; /* NULL: listed by another node */
    bool extract;
    uint64_t digest;         /* of the source and the way of staging */
    char manifest[32];       /* name of its manifest file */
    bool there;              /* from an earlier run, unchanged */
    hpct_walk_totals totals; /* of what will be staged */
} hpct_source;

typedef struct hpct_placing {
    const hpct_place *place;
    hpct_report *report;
    hpct_room room;
    int to, own, staged, incoming, lock; /* TO, TO/.hpc-train, …/staged, …/incoming, …/lock */
} hpct_placing;

/* A copy that has no final name yet. */
typedef struct hpct_fresh {
    hpct_source *source;
    char name[24]; /* in `incoming` */
    hpct_manifest *manifest;
    hpct_writer_options options;
} hpct_fresh;

/* Lists the source open at src->fd; sets its type and whether it is staged already. */
hpct_status hpct_place_list(hpct_placing *p, hpct_source *src);

/* Sets whether src->digest is staged already; prints that it is, or (verbose) why not. */
void hpct_place_look(hpct_placing *p, hpct_source *src);

/* Checks that the missing sources fit; totals and `there` of each source must be set. */
hpct_status hpct_place_check_space(hpct_placing *p, const hpct_source *sources, int count);

/* Copies or unpacks the source to its final name. */
hpct_status hpct_place_one(hpct_placing *p, hpct_source *src, int number);

/* For a copy that the caller writes: open a writer with fresh->options for the folder p->incoming
 * and fresh->name; after its finish call hpct_place_fresh_put. End it with hpct_place_fresh_end in
 * any case. */
hpct_status hpct_place_fresh(hpct_placing *p, hpct_source *src, int number, hpct_fresh *fresh);
hpct_status hpct_place_fresh_put(hpct_placing *p, hpct_fresh *fresh);
void hpct_place_fresh_end(hpct_fresh *fresh);

/* One attempt; false if another step holds the lock. */
bool hpct_place_try_lock(hpct_placing *p);
void hpct_place_unlock(hpct_placing *p);

/* place_together.c: with the other nodes of p->place->team, after all have connected. */
hpct_status hpct_place_lock_together(hpct_placing *p, hpct_broadcast *b);
hpct_status hpct_place_together(hpct_placing *p, hpct_broadcast *b, hpct_source *sources,
                                int count);

#endif
