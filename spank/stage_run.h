/* spank/stage_run.h - runs and supervises hpc-train-stage as the calling user, without a shell. */
#ifndef HPCT_SPANK_STAGE_RUN_H
#define HPCT_SPANK_STAGE_RUN_H

#include "spank/child.h"
#include "spank/settings.h"
#include "spank/share.h"

typedef struct hpct_spank_stage_run {
    const hpct_spank_settings *settings;
    const char *to;    /* the job directory */
    const char *list;  /* value of --hpc-train-stage, checked */
    const char *mode;  /* value of --hpc-train-stage-mode, checked; NULL: not given */
    const char *hosts; /* "HOST:PORT" lines of the nodes that stage together; NULL: only this one */
    int node;          /* index of this node among them */
    const char *job;   /* "42.0", job and step */
    const char *key;   /* key file of the step; NULL: munge */
    uint64_t memory;   /* memory limit of the job on this node in bytes; 0: unknown */
    int stall_seconds;
} hpct_spank_stage_run;

/* Stages once per node: one task runs the helper, the others wait for its result. The helper's
 * messages go to standard error. Returns the helper's status; HPCT_ERR_IO if it was killed or made
 * no progress. */
hpct_status hpct_spank_stage_run_once(const hpct_spank_stage_run *run, hpct_spank_share *share,
                                      int local_rank);

/* The same without other tasks; an hpct_spank_share_work on an hpct_spank_stage_run. */
hpct_status hpct_spank_stage_run_work(void *run, hpct_spank_share *share);

#endif
