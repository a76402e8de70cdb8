/* spank/given.h - options given more than once. Slurm passes each value to the plugin and forwards
 * the last, without saying whether it is from the environment, the script's #SBATCH lines or the
 * command line. A later source overrides an earlier one, but of two values from one source the
 * first would be lost silently. */
#ifndef HPCT_SPANK_GIVEN_H
#define HPCT_SPANK_GIVEN_H

#include "base/cluster/config.h"
#include "spank/options.h"

#define HPCT_SPANK_MOST_GIVEN 16

/* The distinct values of each option, in order. */
typedef struct hpct_spank_given {
    char *values[HPCT_SPANK_NUM_OPTIONS][HPCT_SPANK_MOST_GIVEN];
} hpct_spank_given;

/* Adds a value unless it is known; `text` is NULL for an option without value. Returns
 * HPCT_ERR_USAGE if there are too many values or memory is exhausted. */
hpct_status hpct_spank_given_add(hpct_spank_given *given, hpct_spank_option option,
                                 const char *text);

/* Returns HPCT_ERR_USAGE, naming the option and both values, if one source has two. `arguments`:
 * the command line, NULL-terminated; `environment`: has the variables by which a job's options
 * reach its commands; `script`: there may be #SBATCH lines (sbatch). */
hpct_status hpct_spank_given_check(const hpct_spank_given *given, char *const *arguments,
                                   const hpct_cluster_environment *environment, bool script);

void hpct_spank_given_free(hpct_spank_given *given);

#endif
