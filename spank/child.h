/* spank/child.h - runs and supervises a program as the job's user, without a shell. Independent of
 * Slurm. */
#ifndef HPCT_SPANK_CHILD_H
#define HPCT_SPANK_CHILD_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

#include "spank/forked.h"
#include "spank/settings.h"

/* Timeout without a heartbeat of the program. */
#define HPCT_SPANK_STALL_SECONDS 300

/* Descriptor of the heartbeat: a one-page memfd in which the program changes a byte. */
#define HPCT_SPANK_PROGRESS_FD 3

/* Descriptor of a file passed to the program. */
#define HPCT_SPANK_CHILD_FILE_FD 4

/* A command line; zero-initialized it has no words. */
#define HPCT_SPANK_ARGV_WORDS (2 * HPCT_SPANK_MAX_STAGE_SRC + 32)
typedef struct hpct_spank_argv {
    char *words[HPCT_SPANK_ARGV_WORDS + 1]; /* NULL-terminated */
    int count;
    char text[256]; /* of printed words */
    size_t used;
} hpct_spank_argv;

/* Adds a word, which is not copied. */
void hpct_spank_argv_add(hpct_spank_argv *argv, const char *word);

/* Adds an option and its value; nothing if `value` is NULL. */
void hpct_spank_argv_add_option(hpct_spank_argv *argv, const char *option, const char *value);

/* The same with a printed value, a short one such as a number. */
void hpct_spank_argv_add_printed(hpct_spank_argv *argv, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct hpct_spank_child {
    char *const *arguments; /* argv; the first is the path */
    int stall_seconds;
    int limit_seconds;           /* total timeout; 0: none as long as it makes progress */
    const hpct_spank_person *as; /* NULL: the caller's user */
    const char *cgroup; /* cgroup folder to enter first, from hpct_spank_cgroup_of; NULL: none */
    int file;           /* passed as HPCT_SPANK_CHILD_FILE_FD; 0 or less: none */
    int end_signal;     /* signal for the program when the caller dies */
    bool alone; /* also kills its descendants, for up to 5 seconds; only for a caller with one
                   thread and no other children */
    void (*alive)(void *context); /* called on heartbeats; may be NULL */
    /* Receives the lines of standard error at the end, without control characters, at most 40;
     * NULL: they go to the caller's standard error. */
    void (*line)(void *context, const char *text);
    void *context;
} hpct_spank_child;

/* Runs the program and waits for it; its standard output is redirected to its standard error.
 * Returns HPCT_OK or the program's exit status with a message naming `what`; HPCT_ERR_IO if it was
 * killed or made no progress; HPCT_ERR_STOPPED after limit_seconds; HPCT_ERR_INTERNAL if it could
 * not be started. */
hpct_status hpct_spank_child_run(const hpct_spank_child *child, const char *what);

#endif
