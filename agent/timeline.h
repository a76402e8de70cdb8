/* agent/timeline.h - what each rank did when, for chrome://tracing and Perfetto. Times are taken
 * into memory that was allocated before the first step; the file is written at the end, by rank 0.
 * Knows names of parts of a step, not what they do. */
#ifndef HPCT_AGENT_TIMELINE_H
#define HPCT_AGENT_TIMELINE_H

#include "agent/context.h"

#define HPCT_TIMELINE_STEPS                                                                        \
    50 /* are taken, from the second on: connections are made in the first */

typedef enum hpct_timeline_part {
    HPCT_TIMELINE_INPUT,
    HPCT_TIMELINE_FORWARD,
    HPCT_TIMELINE_BACKWARD,
    HPCT_TIMELINE_WAIT, /* until all is added up */
    HPCT_TIMELINE_UPDATE,
    HPCT_TIMELINE_PIECE_FORWARD,  /* of the micro-batch with that number, within forward or … */
    HPCT_TIMELINE_PIECE_BACKWARD, /* … backward; a pipeline does both in there */
    HPCT_TIMELINE_REDUCTION,      /* of the bucket with that number, on a track of its own */
} hpct_timeline_part;

typedef struct hpct_timeline hpct_timeline;

/* Collective. path NULL: *out is NULL, with which all of the functions below do nothing.
 */
hpct_status hpct_timeline_open(hpct_timeline **out, hpct_context *context, const char *path);
void hpct_timeline_close(hpct_timeline *timeline);

/* The next step begins. */
void hpct_timeline_step(hpct_timeline *timeline);

/* A part of the step, from `began` (what now returned then; 0 where nobody asked) until now. */
double hpct_timeline_now(const hpct_timeline *timeline);
void hpct_timeline_add(hpct_timeline *timeline, hpct_timeline_part part, int number, double began);

/* Chrome's trace format: {"traceEvents": [{"ph": "X", "pid": rank, "ts" and "dur" in
 * microseconds}]}; what the rank computes has "tts" and "tdur", too, the processor time of the
 * thread that steps, which other programs on its core do not lengthen. Collective, once, after the
 * last step. */
hpct_status hpct_timeline_write(hpct_timeline *timeline, hpct_context *context);

#endif
