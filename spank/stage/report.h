/* spank/stage/report.h - what the helper says while it works: to people on standard error, to the
 * plugin by a byte that changes. Also carries the wish to end (SIGTERM and its like). */
#ifndef HPCT_STAGE_REPORT_H
#define HPCT_STAGE_REPORT_H

#include <hpctrain/status.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_report {
    bool verbose;
    bool quiet;                         /* nothing is said of what is copied or there */
    int progress_fd;                    /* -1: nobody listens */
    unsigned char signs;                /* the last byte that it was given */
    int touch_fd;                       /* a file whose time shows that the work goes on, or -1 */
    _Atomic uint64_t files, bytes;      /* copied so far */
    uint64_t total, total_files;        /* to copy; 0: not known */
    _Atomic uint64_t read;              /* of an archive, */
    uint64_t read_total;                /* of so many bytes; 0: it is none */
    pthread_mutex_t mutex;              /* for the times below: several threads may tick */
    double start, last_line, last_byte; /* seconds */
    double grace;                       /* seconds for which the work goes on after a signal */
    double limit;                       /* seconds for all of it; 0: none */
    double stop;                        /* when the grace is over; 0: no signal yet */
    /* Called now and then while all goes well; a failure ends the work. NULL: not. */
    hpct_status (*alive)(void *context);
    void *alive_context;
    bool told; /* the failure is another node's, which says it itself */
} hpct_report;

void hpct_report_start(hpct_report *report, bool verbose, int progress_fd);

/* To be called between pieces of work, at least every few megabytes. HPCT_ERR_STOPPED when a signal
 * asked to end, or the time is over. Prints a line every few seconds. Several threads may. */
hpct_status hpct_report_tick(hpct_report *report, uint64_t bytes);

/* The same for who must go on (removing what is left): only the signs of life. */
void hpct_report_alive(hpct_report *report);

/* HPCT_ERR_STOPPED when a signal asked to end. For who waits, and has no progress to tell of. */
hpct_status hpct_report_stopped(void);

/* "hpc-train-stage: NODE: …" on standard error, whole lines. */
void hpct_report_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The last line: files, bytes, seconds, rate; what took less than `least` seconds only when
 * verbose. */
void hpct_report_end(const hpct_report *report, const char *to, double least);

/* SIGTERM, SIGINT, SIGHUP, SIGXCPU from now on ask to end; SIGUSR1 and others that do not are
 * ignored. */
void hpct_report_catch_signals(void);

#endif
