/* agent/rank/stop.h - signals as a request to stop training. */
#ifndef HPCT_AGENT_RANK_STOP_H
#define HPCT_AGENT_RANK_STOP_H

/* From now on the first of SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP and SIGXCPU is recorded. A
 * SIGINT or SIGTERM two seconds or more after another ends the process. SIGPIPE and SIGXFSZ are
 * ignored: write errors are handled where they occur. Signals the program ignores or handles are
 * left alone; SIGHUP only if ignored. */
void hpct_rank_stop_begin(void);
void hpct_rank_stop_end(void);

/* The signal since hpct_rank_stop_begin, or 0. */
int hpct_rank_stop_signal(void);

/* The same as a signal, and unlike any: the job's time limit is near. */
#define HPCT_RANK_STOP_DEADLINE 65
/* The same for a callback that asks for the end: no reason to continue the run. */
#define HPCT_RANK_STOP_CALLBACK 66
void hpct_rank_stop_raise(int signal);

/* Its name, "SIGINT". */
const char *hpct_rank_stop_name(int signal);

#endif
