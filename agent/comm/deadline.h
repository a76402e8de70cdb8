/* agent/comm/deadline.h - an end to a call that has none of its own (MPI_Init). */
#ifndef HPCT_COMM_DEADLINE_H
#define HPCT_COMM_DEADLINE_H

#include <hpctrain/status.h>

typedef struct hpct_deadline hpct_deadline;

/* Unless hpct_deadline_end comes within `seconds`, the process prints `line` on stderr and ends
 * with the exit code `status`. */
hpct_status hpct_deadline_begin(hpct_deadline **out, int seconds, hpct_status status,
                                const char *line);
void hpct_deadline_end(hpct_deadline *deadline);

#endif
