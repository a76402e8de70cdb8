/* spank/stage/out.h - results out of the job directory: each entry of a list to its destination,
 * first beside it under a name of our own and then renamed. */
#ifndef HPCT_STAGE_OUT_H
#define HPCT_STAGE_OUT_H

#include "spank/stage/out_record.h"
#include "spank/stage/report.h"

typedef struct hpct_out_job {
    const char *from; /* the job directory */
    bool again;       /* an earlier try was cut off: go on with what it had begun */
    bool last;        /* nobody tries after this: half copied folders get the name DST.partial */
    int process;      /* sets unfinished copies apart from those of the step's other tasks; 0: no
                         other one copies for this step and node */
    bool note;        /* what is lost is written to CWD/hpc-train-lost.JOB.STEP.NODE as well */
} hpct_out_job;

/* For each entry '1' when there was something of it to copy, else '0'. */
typedef char hpct_out_found[HPCT_OUT_ENTRIES + 1];

/* Copies all that the record says, as far as it can; a source that is not there is no failure.
 * HPCT_OK when nothing was lost; else why the first thing was: HPCT_ERR_NO_INPUT (it could not be
 * read), HPCT_ERR_IO, HPCT_ERR_STOPPED (a signal, or the time was over). All that was there and was
 * not copied has been named on standard error. */
hpct_status hpct_out_run(const hpct_out_job *job, const hpct_out_record *record,
                         hpct_report *report, hpct_out_found found);

/* Says of each entry that was not found that it is not there, and returns how many these are. Not
 * of those that are marked in the open folder `marks` (hpct_out_found_mark); -1: none is. */
int hpct_out_say_missing(const hpct_out_job *job, const hpct_out_record *record,
                         const hpct_out_found found, int marks);

/* hpc-train-stage --out …; returns the exit status. */
int hpct_out_main(int argc, char **argv);

#endif
