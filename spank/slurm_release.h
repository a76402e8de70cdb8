/* spank/slurm_release.h - what differs between Slurm 22.05 and 26.05. Forms of calls and structures
 * are chosen at compile time by what configure found in Slurm's headers (m4/hpct_slurm.m4).
 * Optional symbols are weak and listed in slurm_symbols.h. */
#ifndef HPCT_SPANK_SLURM_RELEASE_H
#define HPCT_SPANK_SLURM_RELEASE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* KillWait: seconds from the first signal to SIGKILL. */
int hpct_slurm_kill_wait(void);

/* Time limit of an epilog in seconds; 0: none. */
int hpct_slurm_epilog_limit(void);

/* Whether Slurm's daemons authenticate by munge, which then runs on every node. */
bool hpct_slurm_uses_munge(void);

/* The address of a node, which the caller frees; NULL if unknown. NodeAddr of slurm.conf; for cloud
 * and dynamic nodes the numeric address in the job's credential (23.11 and later). No DNS
 * lookup. */
char *hpct_slurm_address(const char *node);

/* SrunPortRange; 0 and 0: any. */
void hpct_slurm_srun_ports(int *low, int *high);

/* The nodes of a step, from slurmctld, in Slurm's order; the caller frees it; NULL if unknown. In a
 * user's command. */
char *hpct_slurm_step_nodes(uint32_t job, uint32_t step);

/* When the job ends, in seconds since 1970, from slurmctld; 0 if unknown. In a user's command. */
int64_t hpct_slurm_end_time(uint32_t job);

/* Makes slurmctld signal the whole step, including its components within one job; SIGKILL ends it.
 * No effect if that is already under way. */
void hpct_slurm_signal_step(uint32_t job, uint32_t step, int number);

/* Ends the job with an exit code, recorded as the job's. */
void hpct_slurm_end_job(uint32_t job, int code);

/* Whether the job has reached its time limit, as slurmctld says. */
bool hpct_slurm_ran_out(uint32_t job);

/* Requeues a batch job: it ends, and waits in the queue again. HPCT_ERR_CONFIG with Slurm's reason:
 * no batch job, --no-requeue. */
hpct_status hpct_slurm_requeue(uint32_t job);

/* Kills the step's tasks through the nodes' daemons. False if a node did not know the step: tasks
 * not started yet, or ended. For components that are separate jobs: srun 22.05 does not return
 * under PMIx if slurmctld ends them (nor after scancel). */
bool hpct_slurm_end_step(uint32_t job, uint32_t step);

#endif
