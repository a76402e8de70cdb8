/* spank/timed_child.h - work of root that other processes could block, done in a child process
 * with a timeout. Independent of Slurm. */
#ifndef HPCT_SPANK_TIMED_CHILD_H
#define HPCT_SPANK_TIMED_CHILD_H

#include <hpctrain/status.h>
#include <stdbool.h>

#include "spank/forked.h"

/* The work. Changes to memory are lost; lines of hpct_spank_timed_child_print, status and message
 * are returned. Only files that it opens itself are open. */
typedef hpct_status (*hpct_spank_timed_child_work)(void *context);

typedef struct hpct_spank_timed_child {
    const char *what; /* "removing the job directory" */
    int seconds;
    const hpct_spank_person *as; /* user to become first; NULL: none */
    hpct_spank_timed_child_work work;
    void *context;
    /* receives the lines at the end or timeout; may be NULL */
    void (*line)(void *context, bool error, const char *text);
    void *line_context;
    /* private */
    struct hpct_spank_timed_child_page *page;
    pid_t pid;
    double start;
} hpct_spank_timed_child;

/* Starts the child; call hpct_spank_timed_child_await even on error. */
void hpct_spank_timed_child_start(hpct_spank_timed_child *timed_child);

/* Waits until `seconds` after its start, then up to HPCT_SPANK_KILL_SECONDS for its end. Returns
 * the status of the work, HPCT_ERR_IO if it was killed, HPCT_ERR_STOPPED on timeout. */
hpct_status hpct_spank_timed_child_await(hpct_spank_timed_child *timed_child);

/* Starts and waits. */
hpct_status hpct_spank_timed_child_run(hpct_spank_timed_child timed_child);

/* Called by the work: passes a line to the caller. */
void hpct_spank_timed_child_print(bool error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
