/* base/process.h - times and memory of this process. */
#ifndef HPCT_BASE_PROCESS_H
#define HPCT_BASE_PROCESS_H

/* Seconds since this process started, before main; resolution 0.01. */
double hpct_process_age(void);

/* Peak resident set size, in MiB. */
double hpct_process_peak_mb(void);

/* Seconds of a monotonic clock. */
double hpct_process_clock(void);

#endif
