/* spank/requeue.h - sbatch --hpc-train-requeue: a batch job whose script asks to be continued, by
 * exit status 75, or is ended at the time limit, is requeued. Runs in the script's slurmstepd, as
 * root: the value is a number. */
#ifndef HPCT_SPANK_REQUEUE_H
#define HPCT_SPANK_REQUEUE_H

#include "spank/contexts.h"

/* When the script has ended and its results are copied; no effect in other steps. Says what is
 * done in the job's output. */
void hpct_spank_requeue_script(hpct_spank_plugin *plugin, hpct_slurm *slurm);

#endif
