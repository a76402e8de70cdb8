/* agent/train/pace.h - how long the parts of a step take on each rank, known to all ranks every few
 * seconds: for pace.jsonl in the log folder, and to name a node that is slow. */
#ifndef HPCT_AGENT_TRAIN_PACE_H
#define HPCT_AGENT_TRAIN_PACE_H

#include "agent/rank/context.h"
#include "agent/train/pace_file.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_pace hpct_pace;

typedef struct hpct_pace_options {
    const hpct_model *model; /* whose device may be busy; NULL: none */
    const char *log_dir;     /* rank 0, for pace.jsonl; NULL: none */
    bool continues;          /* a run whose pace.jsonl goes on */
    bool speaks;             /* rank 0 names slow nodes, */
    bool waits_apart;        /* where waiting for others is not part of computing */
} hpct_pace_options;

/* Collective. A file that cannot be written is a remark, no error. */
hpct_status hpct_pace_open(hpct_pace **out, hpct_context *context,
                           const hpct_pace_options *options);
void hpct_pace_close(hpct_pace *pace); /* NULL is allowed */

/* From now on lines go to the file, which replaces that of an earlier run. */
void hpct_pace_settle(hpct_pace *pace);

/* Seconds of the parts of the step that has just ended, epoch and step from 1. `seconds`:
 * [HPCT_PACE_PARTS], without memory. Collective every few seconds and at the end of epochs, after
 * the same steps on all ranks; *known: it was. NULL is allowed. */
hpct_status hpct_pace_step(hpct_pace *pace, const double *seconds, int epoch, int64_t step,
                           bool epoch_ended, bool *known);

/* What is known: [ranks] means in ms, or MB; the nodes' names by rank. */
const double *hpct_pace_known(const hpct_pace *pace, hpct_pace_part part);
const double *hpct_pace_busy(const hpct_pace *pace); /* share of the time, of each GPU; or NaN */
const char *const *hpct_pace_nodes(const hpct_pace *pace);

#endif
