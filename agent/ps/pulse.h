/* agent/ps/pulse.h - a worker's thread that shows server 0 signs of life while the worker computes,
 * and ends the process with exit code 69 and one line when server 0 is lost, or says that the run
 * cannot go on. */
#ifndef HPCT_PS_PULSE_H
#define HPCT_PS_PULSE_H

#include "agent/comm/session.h"
#include "agent/ps/run.h"

typedef struct hpct_ps_pulse hpct_ps_pulse;

/* session: a fresh one with server 0, taken over. */
hpct_status hpct_ps_pulse_start(hpct_ps_pulse **out, const hpct_ps_run *run, hpct_session *session);
void hpct_ps_pulse_stop(hpct_ps_pulse *pulse); /* NULL is allowed */

#endif
