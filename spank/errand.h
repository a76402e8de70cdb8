/* spank/errand.h - a piece of root's own work that others could hold up, in a process of its own:
 * whatever becomes of that, who has sent it goes on in time. Knows nothing of Slurm. */
#ifndef HPCT_SPANK_ERRAND_H
#define HPCT_SPANK_ERRAND_H

#include <hpctrain/status.h>
#include <stdbool.h>

#include "spank/forked.h"

/* The work. What it changes in memory is lost; what it says with hpct_errand_say, and its status
 * and message, are not. It finds no open files but its own. */
typedef hpct_status (*hpct_errand_work)(void *context);

typedef struct hpct_errand {
    const char *what; /* "removing the job directory" */
    int seconds;
    const hpct_person *as; /* whom it becomes first; NULL: nobody else */
    hpct_errand_work work;
    void *context;
    /* gets what it has said, when it has ended or its time is over; may be NULL */
    void (*line)(void *context, bool error, const char *text);
    void *line_context;
    /* its own */
    struct hpct_errand_page *page;
    pid_t pid;
    double start;
} hpct_errand;

/* Sends it; to be waited for even when this fails. */
void hpct_errand_start(hpct_errand *errand);

/* Waits until `seconds` after its start, and then for up to HPCT_KILL_SECONDS. The status of the
 * work, or HPCT_ERR_IO when it was killed, HPCT_ERR_STOPPED when its time was over. */
hpct_status hpct_errand_await(hpct_errand *errand);

/* Both. */
hpct_status hpct_errand_run(hpct_errand errand);

/* In the work: a line for who has sent it. */
void hpct_errand_say(bool error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
