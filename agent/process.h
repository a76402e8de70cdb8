/* agent/process.h - what the system knows of this process. */
#ifndef HPCT_AGENT_PROCESS_H
#define HPCT_AGENT_PROCESS_H

/* Seconds since this process began (before main; to a hundredth). */
double hpct_process_age(void);

/* Largest resident size so far, in MiB. */
double hpct_process_peak_mb(void);

/* Seconds of a clock that never jumps back. */
double hpct_process_clock(void);

#endif
