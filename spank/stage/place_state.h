/* spank/stage/place_state.h - staging from within: for place*.c alone. */
#ifndef HPCT_STAGE_PLACE_STATE_H
#define HPCT_STAGE_PLACE_STATE_H

#include "spank/stage/broadcast.h"
#include "spank/stage/manifest.h"
#include "spank/stage/place.h"
#include "spank/stage/room.h"
#include "spank/stage/walk.h"
#include "spank/stage/writer.h"

#define HPCT_LOCK_SECONDS 300 /* a holder that makes no progress for so long is stuck */

/* One entry of the list. */
typedef struct hpct_source {
    const hpct_stage_entry *entry;
    int fd;          /* -1: it is not to be seen from here (another node reads it) */
    hpct_walk *walk; /* NULL: another node's */
    bool extract;
    uint64_t digest;         /* of the source, and of how it is staged */
    char manifest[32];       /* its file's name */
    bool there;              /* from an earlier run, unchanged */
    hpct_walk_totals totals; /* of what is to come */
} hpct_source;

typedef struct hpct_placing {
    const hpct_place *place;
    hpct_report *report;
    hpct_room room;
    int to, own, staged, incoming, lock; /* TO, TO/.hpc-train, …/staged, …/incoming, …/lock */
} hpct_placing;

/* A copy on its way to its place. */
typedef struct hpct_fresh {
    hpct_source *source;
    char name[24]; /* in `incoming` */
    hpct_manifest *manifest;
    hpct_writer_options options;
} hpct_fresh;

/* Lists the source that src->fd is open on; finds out what it is, and whether it is there already. */
hpct_status hpct_place_list(hpct_placing *p, hpct_source *src);

/* Whether what src->digest stands for is there; says so, or (when verbose) why not. */
void hpct_place_look(hpct_placing *p, hpct_source *src);

/* Whether what is not there yet fits; each source's totals and `there` are set. */
hpct_status hpct_place_check_space(hpct_placing *p, const hpct_source *sources, int count);

/* Copies or unpacks the source to its place. */
hpct_status hpct_place_one(hpct_placing *p, hpct_source *src, int number);

/* The same for a copy that somebody else makes: fill fresh->options into a writer for the folder
 * p->incoming and fresh->name; after its finish, hpct_place_fresh_put. Always end it. */
hpct_status hpct_place_fresh(hpct_placing *p, hpct_source *src, int number, hpct_fresh *fresh);
hpct_status hpct_place_fresh_put(hpct_placing *p, hpct_fresh *fresh);
void hpct_place_fresh_end(hpct_fresh *fresh);

/* One attempt; false when another step has it. */
bool hpct_place_try_lock(hpct_placing *p);
void hpct_place_unlock(hpct_placing *p);

/* place_together.c: with the other nodes of p->place->team, when all have met. */
hpct_status hpct_place_lock_together(hpct_placing *p, hpct_broadcast *b);
hpct_status hpct_place_together(hpct_placing *p, hpct_broadcast *b, hpct_source *sources, int count);

#endif
