/* agent/comm/deadline.h - timeout for a call that has none (MPI_Init). */
#ifndef HPCT_AGENT_COMM_DEADLINE_H
#define HPCT_AGENT_COMM_DEADLINE_H

#include <hpctrain/status.h>

typedef struct hpct_comm_deadline hpct_comm_deadline;

/* Unless hpct_comm_deadline_end is called within `seconds`, prints `line` on stderr and exits with
 * `status`. */
hpct_status hpct_comm_deadline_begin(hpct_comm_deadline **out, int seconds, hpct_status status,
                                     const char *line);
void hpct_comm_deadline_end(hpct_comm_deadline *deadline);

#endif
