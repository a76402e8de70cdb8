/* spank/stage_run.h - runs hpc-train-stage as the calling user, without a shell, and watches it. */
#ifndef HPCT_SPANK_STAGE_RUN_H
#define HPCT_SPANK_STAGE_RUN_H

#include "spank/child.h"
#include "spank/settings.h"
#include "spank/share.h"

typedef struct hpct_stage_run {
    const hpct_settings *settings;
    const char *to;   /* the job directory */
    const char *list; /* the value of --hpc-train-stage, checked */
    const char *mode; /* the value of --hpc-train-stage-mode, checked; NULL: not given */
    const char
        *hosts;      /* "HOST:PORT" lines of the nodes that stage together; NULL: this one alone */
    int node;        /* which of them this is */
    const char *job; /* "42.0", job and step */
    const char *key; /* a file with the step's key; NULL: nodes use munge */
    uint64_t memory; /* bytes that the job may use on this node; 0: not known */
    int stall_seconds;
} hpct_stage_run;

/* An hpct_share_work on an hpct_stage_run. The helper's own messages go to standard error.
 * HPCT_ERR_* as the helper ended; HPCT_ERR_IO when it was killed or made no progress. */
hpct_status hpct_stage_run_work(void *run, hpct_share *share);

#endif
