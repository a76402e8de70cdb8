/* spank/child.h - runs a program as the job's user, without a shell, and watches it. Knows nothing
 * of Slurm. */
#ifndef HPCT_SPANK_CHILD_H
#define HPCT_SPANK_CHILD_H

#include <hpctrain/status.h>
#include <stdbool.h>

#include "spank/forked.h"

/* A program that says nothing for so long is taken for stuck. */
#define HPCT_STALL_SECONDS 300

/* Where the program may change a byte now and then, to say that it is alive: a file in memory, of
 * one page. */
#define HPCT_PROGRESS_FD 3

/* Where it finds an open file that it was given. */
#define HPCT_CHILD_FILE_FD 4

typedef struct hpct_child {
    char *const *arguments; /* the first is the program's path */
    int stall_seconds;
    int limit_seconds;     /* in all; 0: as long as it makes progress */
    const hpct_person *as; /* NULL: who calls */
    const char *cgroup;    /* a folder to enter first, as hpct_cgroup_of names it; NULL: none */
    int file;              /* given to it as HPCT_CHILD_FILE_FD; 0 or less: none */
    int end_signal;        /* what the program gets when the caller dies */
    bool alone; /* whatever it has started ends with it, for up to 5 seconds; for a caller that has
                   one thread and no other children */
    void (*alive)(void *context); /* called when it says that it is alive; may be NULL */
    /* When it has ended, gets each line that it wrote to standard error, without control
     * characters, 40 at most; NULL: they go to the caller's standard error. */
    void (*line)(void *context, const char *text);
    void *context;
} hpct_child;

/* Waits for the program, whose standard output goes where its standard error does. What it returns
 * is HPCT_OK, or its exit status with a message that names `what`; HPCT_ERR_IO when it was killed
 * or made no progress (HPCT_ERR_STOPPED after limit_seconds), HPCT_ERR_INTERNAL when it could not
 * be started. */
hpct_status hpct_child_run(const hpct_child *child, const char *what);

#endif
