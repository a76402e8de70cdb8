/* agent/stop.h - SIGINT and SIGTERM as a wish to stop, while training. */
#ifndef HPCT_AGENT_STOP_H
#define HPCT_AGENT_STOP_H

/* From now on the first SIGINT or SIGTERM is only remembered; one that comes two seconds later or
 * more ends the process as usual. A signal that the program ignores or handles itself stays its
 * own. */
void hpct_stop_begin(void);
void hpct_stop_end(void);

/* The signal that has come since hpct_stop_begin, or 0. */
int hpct_stop_signal(void);

#endif
