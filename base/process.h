/* base/process.h - times and memory of processes. */
#ifndef HPCT_BASE_PROCESS_H
#define HPCT_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* When a process started, in clock ticks after boot; 0: it has ended and was not waited for; -1:
 * there is none, or it is hidden from this user. */
int64_t hpct_process_start(pid_t pid);

/* Seconds since this process started, before main; resolution 0.01. */
double hpct_process_age(void);

/* Peak resident set size, in MiB. */
double hpct_process_peak_mb(void);

/* Seconds of a monotonic clock. */
double hpct_process_clock(void);

#endif
