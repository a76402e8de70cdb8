/* spank/contexts.h - the plugin's parts, one per place where Slurm loads it. */
#ifndef HPCT_SPANK_CONTEXTS_H
#define HPCT_SPANK_CONTEXTS_H

#include "spank/gpu_meet.h"
#include "spank/options.h"
#include "spank/settings.h"
#include "spank/share.h"
#include "spank/slurm_api.h"

/* What lives as long as the plugin is loaded. In slurmstepd the tasks are forked with a copy. */
typedef struct hpct_plugin {
    hpct_settings settings;
    char trouble[1024]; /* why hpc-train cannot be used; "" when it can */
    hpct_options options;
    /* slurmstepd only */
    bool on;
    uint32_t job, step;
    hpct_share *share;
    hpct_gpu_meet *gpus;
} hpct_plugin;

/* srun, sbatch, salloc, before anything is queued: checks what the environment says (the command
 * line was checked option by option). Other than HPCT_OK, after a message, when the command must
 * end with that status: HPCT_ERR_CONFIG when it is the administrator's arguments that are wrong. */
hpct_status hpct_client_check(hpct_plugin *plugin);

/* slurmd, as root, when it starts, before any job: the job directories' parent is made. */
void hpct_daemon_start(hpct_plugin *plugin);

/* slurmstepd, as root, before it becomes the user: decides whether hpc-train is on for this step,
 * and makes the job directory. Keeps what goes wrong in plugin->trouble, for the tasks to report:
 * an error of a step must never look like an error of the node. */
void hpct_step_start(hpct_plugin *plugin, hpct_slurm *slurm);

/* Each task, as the user: data, environment, GPU, port. HPCT_OK when it may start; after anything
 * else the message was printed and the step is being ended. */
hpct_status hpct_task_start(hpct_plugin *plugin, hpct_slurm *slurm);

/* Prolog and epilog of a job on a node, as root: the job directory of an earlier run, or of this
 * one, is removed. */
void hpct_job_clean(hpct_plugin *plugin, hpct_slurm *slurm);

/* Epilog only, where nobody waits for a job to start: what earlier removals had to leave. */
void hpct_job_sweep(hpct_plugin *plugin);

#endif
