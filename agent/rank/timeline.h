/* agent/rank/timeline.h - trace of each rank's steps for chrome://tracing and Perfetto. Times are
 * recorded in preallocated memory; rank 0 writes the file at the end. Independent of strategies:
 * knows only the names of parts. */
#ifndef HPCT_AGENT_RANK_TIMELINE_H
#define HPCT_AGENT_RANK_TIMELINE_H

#include "agent/rank/context.h"

#define HPCT_RANK_TIMELINE_STEPS 50 /* recorded, from step 2: step 1 opens connections */

typedef enum hpct_rank_timeline_part {
    HPCT_RANK_TIMELINE_INPUT,
    HPCT_RANK_TIMELINE_FORWARD,
    HPCT_RANK_TIMELINE_BACKWARD,
    HPCT_RANK_TIMELINE_WAIT, /* until all sums are complete */
    HPCT_RANK_TIMELINE_UPDATE,
    HPCT_RANK_TIMELINE_PIECE_FORWARD,  /* a micro-batch's, within forward or ... */
    HPCT_RANK_TIMELINE_PIECE_BACKWARD, /* ... backward; a pipeline executes both in each */
    HPCT_RANK_TIMELINE_REDUCTION,      /* a bucket's, on its own track */
} hpct_rank_timeline_part;

typedef struct hpct_rank_timeline hpct_rank_timeline;

/* Collective. path NULL: *out is NULL, and the functions below have no effect. */
hpct_status hpct_rank_timeline_open(hpct_rank_timeline **out, hpct_context *context,
                                    const char *path);
void hpct_rank_timeline_close(hpct_rank_timeline *timeline);

/* Begins the next step. */
void hpct_rank_timeline_step(hpct_rank_timeline *timeline);

/* Records a part of the step, from `began` (from hpct_rank_timeline_now; 0 if not recording) until
 * now. */
double hpct_rank_timeline_now(const hpct_rank_timeline *timeline);
void hpct_rank_timeline_add(hpct_rank_timeline *timeline, hpct_rank_timeline_part part, int number,
                            double began);

/* Chrome's format: {"traceEvents": [{"ph": "X", "pid": rank, "ts" and "dur" in microseconds}]};
 * computation also has "tts" and "tdur", CPU time of the stepping thread. Collective, once, after
 * the last step. */
hpct_status hpct_rank_timeline_write(hpct_rank_timeline *timeline, hpct_context *context);

#endif
