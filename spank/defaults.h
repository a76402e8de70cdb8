/* spank/defaults.h - passes the options' environment variables from srun, sbatch and salloc to the
 * steps. --export determines the tasks' environment, not the options of a step. */
#ifndef HPCT_SPANK_DEFAULTS_H
#define HPCT_SPANK_DEFAULTS_H

#include "spank/options.h"
#include "spank/slurm_api.h"

/* Returns HPCT_ERR_USAGE for a variable that looks like a misspelled staging option, naming it. */
hpct_status hpct_spank_defaults_check(char *const *environment);

/* srun, sbatch, salloc: copies the variables to names that --export always forwards. */
hpct_status hpct_spank_defaults_send(void);

/* slurmstepd, as root: sets those variables in the step that --export has dropped. *sent has the
 * bit 1 << HPCT_SPANK_OPTION_… of each option whose variable was sent with the value that the step
 * has. */
hpct_status hpct_spank_defaults_take(hpct_slurm *slurm, unsigned *sent);

#endif
