/* agent/profile.h - the table of `hpc-train bench --profile`. Prints what it is told. */
#ifndef HPCT_AGENT_PROFILE_H
#define HPCT_AGENT_PROFILE_H

#include "nn/profile.h"

#include <stdio.h>

/* `step_seconds` of all rows and the rest, which this works out. */
void hpct_profile_print(FILE *stream, const hpct_profile_row *rows, int num_rows,
                        double step_seconds, const hpct_rates *rates);

#endif
