/* spank/stage_out.h - runs hpc-train-stage --out as the job's user, from root's processes.
 * Independent of SPANK; the stage-out record is beside the job directory, written and read by the
 * user. */
#ifndef HPCT_SPANK_STAGE_OUT_H
#define HPCT_SPANK_STAGE_OUT_H

#include "spank/child.h"
#include "spank/settings.h"

/* Longest name of a step. */
#define HPCT_SPANK_STEP_NAME 16

typedef struct hpct_spank_stage_out {
    const hpct_spank_settings *settings;
    const char *from; /* the job directory */
    const hpct_spank_person *as;
} hpct_spank_stage_out;

/* When the last task of a step has ended on this node; messages go to standard error. After a
 * signal, copying continues for `grace` seconds. */
hpct_status hpct_spank_stage_out_step(const hpct_spank_stage_out *out, const char *step,
                                      const char *cgroup, double grace);

/* After the job: copies what its steps could not, in at most `seconds`; `line` receives the
 * program's lines. */
hpct_status hpct_spank_stage_out_last(const hpct_spank_stage_out *out, int seconds,
                                      void (*line)(void *context, const char *text), void *context);

#endif
