/* spank/share.h - memory shared by the tasks of one step on one node, mapped before they are
 * forked; elects one task to do work for all. */
#ifndef HPCT_SPANK_SHARE_H
#define HPCT_SPANK_SHARE_H

#include <hpctrain/status.h>
#include <stdbool.h>

#include "spank/agree/network.h"

typedef struct hpct_spank_share hpct_spank_share;

/* Before the fork. HPCT_ERR_INTERNAL without memory. */
hpct_status hpct_spank_share_make(hpct_spank_share **out);
void hpct_spank_share_free(hpct_spank_share *share);

/* The work; reports progress through *share. */
typedef hpct_status (*hpct_spank_share_work)(void *context, hpct_spank_share *share);

/* Work to be done once. */
typedef enum hpct_spank_share_piece {
    HPCT_SPANK_SHARE_PORTS,
    HPCT_SPANK_SHARE_DATA,
    HPCT_SPANK_SHARE_PIECES
} hpct_spank_share_piece;

/* Runs `work` in one of the calling processes and returns its status and message in all. The others
 * wait while it makes progress; after `stall_seconds` without, they return an error that names
 * `what` and the process. If that process is killed, they return at once. `me` is the caller's task
 * id. */
hpct_status hpct_spank_share_once(hpct_spank_share *share, hpct_spank_share_piece piece, int me,
                                  const char *what, int stall_seconds, hpct_spank_share_work work,
                                  void *context);

/* Reports progress. */
void hpct_spank_share_progress(hpct_spank_share *share);

/* The chosen block of ports: set by the work, read after it. */
void hpct_spank_share_set_choice(hpct_spank_share *share, int choice);
int hpct_spank_share_choice(const hpct_spank_share *share);

/* The network of the step: filled by the same work, zeroed before. */
hpct_agree_network *hpct_spank_share_network(hpct_spank_share *share);

typedef enum hpct_spank_share_mark {
    HPCT_SPANK_SHARE_REPORTED = 1, /* a failure was reported */
    HPCT_SPANK_SHARE_STARTED = 2,  /* a task's program starts */
    HPCT_SPANK_SHARE_RECORDED = 8, /* a task has written the stage-out record, or tried to */
    HPCT_SPANK_SHARE_TOLD = 4,     /* slurmstepd has been asked to end the step */
} hpct_spank_share_mark;

/* Sets the mark. True for the first caller on this node only. */
bool hpct_spank_share_first(hpct_spank_share *share, hpct_spank_share_mark mark);

/* Whether the mark is set. */
bool hpct_spank_share_marked(hpct_spank_share *share, hpct_spank_share_mark mark);

#endif
