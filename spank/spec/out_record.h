/* spank/spec/out_record.h - stage-out record: what a step is to copy out, as a user's file
 * beside the job directory, so that it survives all processes of the step and whatever empties that
 * directory. Written by the plugin and read by hpc-train-stage, both as the user; never by root. */
#ifndef HPCT_SPANK_SPEC_OUT_RECORD_H
#define HPCT_SPANK_SPEC_OUT_RECORD_H

#include <hpctrain/status.h>
#include <stdint.h>
#include <sys/types.h>

#include "spank/spec/out_entry.h"

/* The records of the job directory PARENT/42 are files "out.STEP" in the folder PARENT/.records-42,
 * which root makes for the user: in PARENT he can neither list nor remove anything. */
#define HPCT_SPEC_RECORDS_PREFIX ".records-"
#define HPCT_SPEC_OUT_RECORD_PREFIX "out."

/* The folder of a job directory's records, or without one HPCT_SPEC_PRIVATE_FOLDER in `tmpdir`,
 * which may be any folder for hpc-train-stage --out. Returns a descriptor, or -1 and errno. */
int hpct_spec_records_open(const char *tmpdir);

typedef struct hpct_spec_out_record {
    uint32_t job;
    hpct_spec_out_array array;
    char *step; /* "0", "batch" */
    uint32_t node;
    mode_t umask;
    int64_t start;   /* of the step, on this node's clock (hpct_now_ms) */
    char *cwd;       /* base of relative destinations */
    char *list;      /* the option's value */
    uint32_t *tasks; /* [num_tasks] of this node */
    uint32_t num_tasks;
    char *srun;     /* srun's address for reports, "host:port"; NULL: none */
    char *key;      /* the step's key as text */
    uint32_t nodes; /* of the step */
} hpct_spec_out_record;

/* Writes the record of step record->step atomically. Returns HPCT_ERR_IO naming it. */
hpct_status hpct_spec_out_record_write(const char *tmpdir, const hpct_spec_out_record *record);

/* Notes that a step has found entry `number` on a node of the job: by srun, in the open folder, for
 * the script's end. */
void hpct_spec_out_found_mark(int folder, int number);
bool hpct_spec_out_found_marked(int folder, int number);

/* Reads the record `name` in the open folder. Returns HPCT_ERR_NO_INPUT if missing, HPCT_ERR_DATA
 * if malformed. Freed with hpct_spec_out_record_free. */
hpct_status hpct_spec_out_record_read(int folder, const char *name, hpct_spec_out_record *out);
void hpct_spec_out_record_free(hpct_spec_out_record *record);

#endif
