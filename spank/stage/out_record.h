/* spank/stage/out_record.h - what a step is to copy out, kept as a file of the user's in the job
 * directory, so that it can still be done when all who knew of it have been killed. Written by the
 * plugin as the user, read by hpc-train-stage as the user; never by root. */
#ifndef HPCT_STAGE_OUT_RECORD_H
#define HPCT_STAGE_OUT_RECORD_H

#include <hpctrain/status.h>
#include <stdint.h>
#include <sys/types.h>

#include "spank/stage/out_entry.h"

/* The files are called "out.STEP", in HPCT_PRIVATE_FOLDER. */
#define HPCT_OUT_RECORD_PREFIX "out."

typedef struct hpct_out_record {
    uint32_t job;
    hpct_out_array array;
    char *step; /* "0", "batch" */
    uint32_t node;
    mode_t umask;
    char *cwd;       /* what relative destinations start from */
    char *list;      /* the option's value */
    uint32_t *tasks; /* [num_tasks] of this node */
    uint32_t num_tasks;
    char *srun;     /* where what becomes of it is said, "host:port"; NULL: nowhere */
    char *key;      /* the file with the step's key */
    uint32_t nodes; /* of the step */
} hpct_out_record;

/* Writes TMPDIR/.hpc-train/out.STEP, whole or not at all. HPCT_ERR_IO naming it. */
hpct_status hpct_out_record_write(const char *tmpdir, const hpct_out_record *record);

/* That a step has found something of the list's entry `number` on a node of the job: noted by srun,
 * in the open folder, for the script's end. */
void hpct_out_found_mark(int folder, int number);
bool hpct_out_found_marked(int folder, int number);

/* Reads the record `name` in the open folder. HPCT_ERR_NO_INPUT when it is not there,
 * HPCT_ERR_DATA when it is no record. Freed with hpct_out_record_free. */
hpct_status hpct_out_record_read(int folder, const char *name, hpct_out_record *out);
void hpct_out_record_free(hpct_out_record *record);

#endif
