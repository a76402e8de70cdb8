/* spank/share.h - what the tasks of one step on one node have in common: memory mapped before they
 * are forked. One of them is elected to do a piece of work, the others wait for it. */
#ifndef HPCT_SPANK_SHARE_H
#define HPCT_SPANK_SHARE_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_share hpct_share;

/* To be called before the fork; HPCT_ERR_INTERNAL when there is no memory. */
hpct_status hpct_share_make(hpct_share **out);
void hpct_share_free(hpct_share *share);

/* The work: *share is for hpct_share_progress. */
typedef hpct_status (*hpct_share_work)(void *context, hpct_share *share);

/* What is to be done once. */
typedef enum hpct_share_piece {
    HPCT_SHARE_PORTS,
    HPCT_SHARE_DATA,
    HPCT_SHARE_PIECES
} hpct_share_piece;

/* Does `work` in one of the processes that call this, and returns its status and message in all of
 * them. The others wait as long as it makes progress; when there was none
 * for `stall_seconds`, they give up and say that they waited for `what`, done by which process.
 * When the working process is killed, they are told at once. `me` is the caller's task id. */
hpct_status hpct_share_once(hpct_share *share, hpct_share_piece piece, int me, const char *what,
                            int stall_seconds, hpct_share_work work, void *context);

/* Says that the work goes on. */
void hpct_share_progress(hpct_share *share);

/* The block of ports that was chosen: set in that work, read after it. */
void hpct_share_set_choice(hpct_share *share, int choice);
int hpct_share_choice(const hpct_share *share);

typedef enum hpct_share_mark {
    HPCT_SHARE_REPORTED = 1, /* a failure was reported */
    HPCT_SHARE_STARTED = 2,  /* a task's program starts */
    HPCT_SHARE_RECORDED = 8, /* a task has left word of what to copy out, or tried to */
    HPCT_SHARE_TOLD = 4,     /* slurmstepd sees to it that the step ends */
} hpct_share_mark;

/* Sets the mark; true for the first caller on this node only. */
bool hpct_share_first(hpct_share *share, hpct_share_mark mark);

/* Whether somebody has set it. */
bool hpct_share_marked(hpct_share *share, hpct_share_mark mark);

#endif
