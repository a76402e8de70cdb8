/* spank/stage/refuse.h - what is said of options that hpc-train-stage does not have. */
#ifndef HPCT_STAGE_REFUSE_H
#define HPCT_STAGE_REFUSE_H

#include <getopt.h>
#include <hpctrain/status.h>

/* HPCT_ERR_USAGE with what getopt_long has found to be wrong: `found` is ':' for a value that is
 * missing, of optstrings that begin with ':', else '?'. With the option that is nearest; `help`
 * says how to see all. */
hpct_status hpct_stage_refuse(int found, char *const argv[], const struct option *options,
                              const char *help);

/* A value that is no whole number from `low` to `high` is refused, naming its option. */
hpct_status hpct_stage_number(const char *option, const char *value, long low, long high,
                              long *number);

#endif
