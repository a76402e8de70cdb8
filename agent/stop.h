/* agent/stop.h - signals as a wish to stop, while training. */
#ifndef HPCT_AGENT_STOP_H
#define HPCT_AGENT_STOP_H

/* From now on the first of SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP and SIGXCPU is only
 * remembered. A SIGINT or SIGTERM that comes two seconds after another one, or later, ends the
 * process as usual. SIGPIPE and SIGXFSZ are ignored: what cannot be written is seen where it is
 * written. A signal that the program ignores or handles itself stays its own; of SIGHUP only one
 * that it ignores. */
void hpct_stop_begin(void);
void hpct_stop_end(void);

/* The signal that has come since hpct_stop_begin, or 0. */
int hpct_stop_signal(void);

/* "SIGINT" and so on, of those. */
const char *hpct_stop_name(int signal);

#endif
