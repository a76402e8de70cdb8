/* spank/stage/refuse.h - error messages for wrong options of hpc-train-stage. */
#ifndef HPCT_SPANK_STAGE_REFUSE_H
#define HPCT_SPANK_STAGE_REFUSE_H

#include <getopt.h>
#include <hpctrain/status.h>

/* HPCT_ERR_USAGE for an error of getopt_long: `found` is ':' for a missing value (optstring begins
 * with ':'), else '?'. Names the nearest option; `help` is the command that lists all. */
hpct_status hpct_stage_refuse(int found, char *const argv[], const struct option *options,
                              const char *help);

/* Error for a value that is not an integer from `low` to `high`, naming its option. */
hpct_status hpct_stage_number(const char *option, const char *value, long low, long high,
                              long *number);

#endif
