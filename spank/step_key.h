/* spank/step_key.h - the key of a step (base/auth/key.h): drawn by srun, or for a batch script by
 * its slurmstepd; sent in Slurm's launch message, as a variable that slurmstepd takes out of the
 * tasks' environment; left to each task in a file of its own in the job directory. */
#ifndef HPCT_SPANK_STEP_KEY_H
#define HPCT_SPANK_STEP_KEY_H

#include "base/auth/key.h"
#include "spank/slurm_api.h"

/* srun hands on variables that begin with SLURM whatever --export says. */
#define HPCT_STEP_KEY_SENT "SLURM_HPC_TRAIN_KEY"

/* The ports at which srun has the nodes agree on theirs, and hears of results, go the same way. */
#define HPCT_STEP_PORT_SENT "SLURM_HPC_TRAIN_PORT"
#define HPCT_STEP_RESULTS_SENT "SLURM_HPC_TRAIN_RESULTS"

/* srun: draws a key, once for all components of a step, and has it sent. */
hpct_status hpct_step_key_send(hpct_key *key);
hpct_status hpct_step_port_send(const char *variable, int port);

/* slurmstepd, as root: takes what was sent. `alone`: nobody else needs the same, so that one is
 * drawn where none was sent. False: this step has none. */
bool hpct_step_key_take(hpct_key *key, hpct_slurm *slurm, bool alone);

int hpct_step_port_take(hpct_slurm *slurm, const char *variable); /* 0: none was sent */

/* A task, as the user: writes its file, TMPDIR/.hpc-train/key.STEP.RANK, 0600; *path is to be
 * freed. HPCT_ERR_IO naming it. */
hpct_status hpct_step_key_write(const hpct_key *key, const char *tmpdir, uint32_t step,
                                uint32_t rank, char **path);

#endif
