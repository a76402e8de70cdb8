/* spank/slurm_release.h - what differs between the releases of Slurm, 22.05 to 26.05. Which form a
 * call or a structure has is decided when the plugin is compiled, by what configure found in
 * Slurm's headers (m4/hpct_slurm.m4). Symbols of Slurm that the plugin can do without are weak and
 * listed in slurm_symbols.h. */
#ifndef HPCT_SPANK_SLURM_RELEASE_H
#define HPCT_SPANK_SLURM_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

/* The seconds from the signal that asks a job's processes to end to the one that ends them. */
int hpct_slurm_kill_wait(void);

/* The seconds that an epilog may take; 0: no bound. */
int hpct_slurm_epilog_limit(void);

/* Whether Slurm's daemons use munge to know each other, which then runs on every node. */
bool hpct_slurm_uses_munge(void);

/* The address of a node, to be freed; NULL when Slurm does not know it. It is the NodeAddr of
 * slurm.conf; that of a cloud or dynamic node comes with the job's credential (23.11 and later) and
 * is given in figures. Never looked up in the network. */
char *hpct_slurm_address(const char *node);

/* The ports that srun may listen at: SrunPortRange; 0 and 0: any. */
void hpct_slurm_srun_ports(int *low, int *high);

/* Has slurmctld send a signal to the whole step, and to the components of a step within one job;
 * with SIGKILL it ends. Nothing happens where that is being done already. */
void hpct_slurm_signal_step(uint32_t job, uint32_t step, int number);

/* Ends the job with an exit code, which its record then has. */
void hpct_slurm_end_job(uint32_t job, int code);

/* Kills the step's tasks through the nodes' daemons. False when a node did not know the step: it
 * has not started its tasks yet, or they have ended. For components that are jobs of their own:
 * srun 22.05 does not return from those under PMIx when slurmctld ends them (nor after scancel). */
bool hpct_slurm_end_step(uint32_t job, uint32_t step);

#endif
