/* agent/results/live.h - rank 0's state of a run under way, for others to see: status.json in the
 * log folder and --metrics-file, written about once a second. By a thread, so that a file system
 * that is slow or hung delays no step. Errors are counted, and said once at the end: a lost status
 * is not a lost result. */
#ifndef HPCT_AGENT_RESULTS_LIVE_H
#define HPCT_AGENT_RESULTS_LIVE_H

#include "agent/results/live_report.h"

typedef struct hpct_results_live hpct_results_live;

/* All is copied. */
typedef struct hpct_results_live_options {
    const char *log_dir;      /* folder, which exists, for status.json; NULL: not written */
    const char *metrics_file; /* NULL: not written */
    const char *job;          /* number of the Slurm job; NULL: none */
    const char *model, *strategy;
    int workers;
    const char *const *nodes; /* [workers] of each rank, by name; NULL: unknown */
    int epochs;
} hpct_results_live_options;

/* Without log_dir and metrics_file *out is NULL, which all calls allow. Returns HPCT_ERR_INTERNAL
 * if no thread can be started. */
hpct_status hpct_results_live_open(hpct_results_live **out,
                                   const hpct_results_live_options *options);

/* After each step, and when an epoch is evaluated (step_loss NaN): copies the state, in less than a
 * microsecond, without allocation. */
void hpct_results_live_update(hpct_results_live *live, const hpct_results_live_state *state);

/* The name of a rank's node, where it was not known at first. Allocates; keeps the name before if
 * it cannot. */
void hpct_results_live_node(hpct_results_live *live, int rank, const char *node);

/* Of ranks 0 to num - 1, every few seconds; `gpu` may be NULL. */
void hpct_results_live_ranks(hpct_results_live *live, int num, const double *step_ms,
                             const double *wait_ms, const double *input_ms, const double *memory_mb,
                             const double *gpu);

/* Writes the last state, removes --metrics-file, whose values Prometheus would take for those of a
 * run under way, and ends. Waits for a few seconds at most; what a file system blocks is left to
 * end on its own. */
void hpct_results_live_close(hpct_results_live *live, hpct_results_live_how how);

#endif
