/* spank/stage/out/out.h - copies results out of the job directory: each entry of a list to its
 * destination, under a temporary name beside it and then renamed. */
#ifndef HPCT_SPANK_STAGE_OUT_OUT_H
#define HPCT_SPANK_STAGE_OUT_OUT_H

#include "spank/spec/out_record.h"
#include "spank/stage/tree/report.h"

typedef struct hpct_stage_out_job {
    const char *from; /* the job directory */
    bool again;       /* an earlier attempt was interrupted: continue its unfinished copies */
    bool last;        /* last attempt: partial copies of folders are kept as DST.partial */
    int process; /* distinguishes temporary names of the step's other tasks; 0: no other copies for
                    this step and node */
    bool note;   /* losses are also written to CWD/hpc-train-lost.JOB.STEP.NODE */
} hpct_stage_out_job;

/* Per entry '1' if it existed, else '0'. */
typedef char hpct_stage_out_found[HPCT_SPEC_OUT_ENTRIES + 1];

typedef struct hpct_stage_out_result {
    hpct_stage_out_found found;
    bool all_copied; /* another attempt has nothing to do */
} hpct_stage_out_result;

/* Copies as the record says, as much as possible; a missing source is not an error. Returns HPCT_OK
 * if everything has its name, else the status of the first loss: HPCT_ERR_NO_INPUT (unreadable),
 * HPCT_ERR_IO, HPCT_ERR_STOPPED (signal or timeout); with all_copied, HPCT_ERR_IO if copies were
 * kept under other names (hpct_stage_out_put). Each was named on standard error. */
hpct_status hpct_stage_out_run(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                               hpct_stage_report *report, hpct_stage_out_result *result);

/* Reports each entry that was not found and returns their number, except for those marked in the
 * open folder `marks` (hpct_spec_out_found_mark); -1: none. */
int hpct_stage_out_say_missing(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                               const hpct_stage_out_found found, int marks);

#endif
