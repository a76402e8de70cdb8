/* agent/cost/profile.h - prints the table of `hpc-train bench --profile`. */
#ifndef HPCT_AGENT_COST_PROFILE_H
#define HPCT_AGENT_COST_PROFILE_H

#include "nn/run/profile.h"

#include <stdio.h>

/* `step_seconds`: of all rows and the rest, which is printed as the difference. */
void hpct_cost_profile_print(FILE *stream, const hpct_run_profile_row *rows, int num_rows,
                             double step_seconds, const hpct_backend_rates *rates);

#endif
