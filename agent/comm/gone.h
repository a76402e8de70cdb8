/* agent/comm/gone.h - while ranks connect: whether rank 0's task has ended, as signalled by the
 * plugin (base/cluster/tasks.h). Otherwise a task that has ended cannot be distinguished from one
 * that has not started: neither listens. */
#ifndef HPCT_AGENT_COMM_GONE_H
#define HPCT_AGENT_COMM_GONE_H

#include <stdbool.h>

/* Between these two calls the plugin's signal is handled. */
void hpct_comm_gone_begin(void);
void hpct_comm_gone_end(void);

bool hpct_comm_gone_is_zero(void);

#endif
