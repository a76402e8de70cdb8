/* agent/results/run_file.h - run.json in the log folder: what a run is, for `hpc-train report` and
 * for people. Written whole, after the first epoch and at the end. */
#ifndef HPCT_AGENT_RESULTS_RUN_FILE_H
#define HPCT_AGENT_RESULTS_RUN_FILE_H

#include "agent/results/results.h"

#include <hpctrain/status.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct hpct_results_run_file hpct_results_run_file;

/* The facts; a summary has most. All pointers outlive the file's object. */
typedef struct hpct_results_run_facts {
    const char *log_dir;
    const char *host, *job;              /* job NULL: none */
    const char *data, *checkpoint_dir;   /* NULL: unknown, none */
    const char *one_dnn, *mpi, *version; /* versions */
    const char *const *nodes;            /* [ranks] of each rank; NULL, all or one: not known */
    int ranks;
    int64_t samples, steps_per_epoch;
    int epochs; /* that were asked for */
    int begin_epoch;
    int64_t begin_step; /* where this start began */
    json_t *identity;   /* agent/train/identity.h */
    bool continues;     /* an earlier one, whose starts are kept, with the end of each */
    bool again;         /* that was in this process, and went back to a checkpoint */
} hpct_results_run_facts;

/* Begins it; writes nothing. */
hpct_status hpct_results_run_file_open(hpct_results_run_file **out,
                                       const hpct_results_run_facts *facts);
void hpct_results_run_file_close(hpct_results_run_file *file); /* NULL is allowed */

/* `state`: "running", "finished", "stopped" or "failed"; `why` may be NULL. `summary`: as far as it
 * is known. HPCT_ERR_IO naming the file; at the end it is then elsewhere (hpct_results_rescue). */
hpct_status hpct_results_run_file_write(hpct_results_run_file *file,
                                        const hpct_results_summary *summary, const char *state,
                                        const char *why);

/* The last time: how the run has ended. `early`: by itself, before its last epoch. Without steps
 * the earlier run's files stay, but for their state: a run that was killed after its last step is
 * finished by the one that continues it. */
hpct_status hpct_results_run_file_end(hpct_results_run_file *file,
                                      const hpct_results_summary *summary,
                                      const hpct_results_end *end, bool early);

/* The same for a run that an error has ended: its message is kept, and becomes the reason. */
void hpct_results_run_file_fail(hpct_results_run_file *file, const hpct_results_summary *summary);

/* The file in this folder, of a run that has ended in another process or before it trained: its
 * state and the reason, which may be NULL; the rest stays. No effect if there is none. */
hpct_status hpct_results_run_file_restate(const char *log_dir, const char *state, const char *why);

#endif
