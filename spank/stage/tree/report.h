/* spank/stage/tree/report.h - progress of the helper: messages on standard error, a heartbeat byte
 * for the plugin; stop requests by signal (SIGTERM and others). */
#ifndef HPCT_SPANK_STAGE_TREE_REPORT_H
#define HPCT_SPANK_STAGE_TREE_REPORT_H

#include <hpctrain/status.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_stage_report {
    bool verbose;
    bool quiet;                         /* suppress messages about what was copied or reused */
    int progress_fd;                    /* -1: no heartbeat */
    unsigned char signs;                /* last byte written */
    int touch_fd;                       /* a file whose mtime shows progress, or -1 */
    _Atomic uint64_t files, bytes;      /* copied so far */
    uint64_t total, total_files;        /* total; 0: unknown */
    _Atomic uint64_t read;              /* archive: bytes read so far */
    uint64_t read_total;                /* archive: its size in bytes; 0: none */
    pthread_mutex_t mutex;              /* protects the times below: several threads may tick */
    double start, last_line, last_byte; /* seconds */
    double grace;                       /* seconds to continue after a signal */
    double limit;                       /* total timeout in seconds; 0: none */
    double stop;                        /* end of the grace period; 0: no signal yet */
    /* Called every half second or so; an error ends the work. NULL: none. */
    hpct_status (*alive)(void *context);
    void *alive_context;
    bool reported; /* the failure is another node's, which prints it */
} hpct_stage_report;

void hpct_stage_report_start(hpct_stage_report *report, bool verbose, int progress_fd);

/* Call between pieces of work, at least every few megabytes. Returns HPCT_ERR_STOPPED after a
 * signal or timeout. Prints progress every few seconds. Thread-safe. */
hpct_status hpct_stage_report_tick(hpct_stage_report *report, uint64_t bytes);

/* The same during cleanup: heartbeat only, never an error. */
void hpct_stage_report_alive(hpct_stage_report *report);

/* HPCT_ERR_STOPPED after a signal. For waits without progress. */
hpct_status hpct_stage_report_stopped(void);

/* Prints "hpc-train-stage: NODE: …" to standard error, in whole lines. */
void hpct_stage_report_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the summary: files, bytes, seconds, rate; below `least` seconds only if verbose. */
void hpct_stage_report_end(const hpct_stage_report *report, const char *to, double least);

/* Installs signal handlers: SIGTERM, SIGINT, SIGHUP and SIGXCPU request the end; SIGUSR1 and others
 * are ignored. */
void hpct_stage_report_catch_signals(void);

#endif
