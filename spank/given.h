/* spank/given.h - options that were given more than once. Slurm hands a plugin one value after the
 * other and forwards the last; which of them stood in the environment, in the script's #SBATCH
 * lines or on the command line it does not say. A command line overrides a script, which overrides
 * the environment; but of two values in one place the first would be lost without a word. */
#ifndef HPCT_SPANK_GIVEN_H
#define HPCT_SPANK_GIVEN_H

#include "agent/cluster/config.h"
#include "spank/options.h"

#define HPCT_MOST_GIVEN 16

/* The different values of each option, in the order in which they came. */
typedef struct hpct_given {
    char *values[HPCT_NUM_OPTIONS][HPCT_MOST_GIVEN];
} hpct_given;

/* Keeps a value, unless it is kept already; `text` is NULL when the option stood alone.
 * HPCT_ERR_USAGE when there are too many, or out of memory. */
hpct_status hpct_given_add(hpct_given *given, hpct_option option, const char *text);

/* HPCT_ERR_USAGE, naming the option and both values, when one place has two of them. `arguments`:
 * the command line, ended by NULL; `environment`: where a job's options come to its commands;
 * `script`: there may be #SBATCH lines (sbatch). */
hpct_status hpct_given_check(const hpct_given *given, char *const *arguments,
                             const hpct_environment *environment, bool script);

void hpct_given_free(hpct_given *given);

#endif
