/* spank/slurm_api.h - everything the plugin asks of Slurm. Only slurm_api.c, slurm_release.c and
 * plugin.c include Slurm's headers; all other code links and is tested without them. */
#ifndef HPCT_SPANK_SLURM_API_H
#define HPCT_SPANK_SLURM_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cluster/config.h"
#include "spank/child.h"

typedef struct spank_handle hpct_slurm; /* what SPANK calls a spank_t points to */

typedef enum hpct_slurm_item {
    HPCT_SLURM_UID,
    HPCT_SLURM_GID,
    HPCT_SLURM_JOB,
    HPCT_SLURM_STEP,
    HPCT_SLURM_NODE,        /* index of this node in the step */
    HPCT_SLURM_LOCAL_TASKS, /* number of tasks on this node */
    HPCT_SLURM_TOTAL_TASKS,
    HPCT_SLURM_TASK, /* index of this task on the node; in task_init and task_exit */
    HPCT_SLURM_RANK,
    HPCT_SLURM_NODES,  /* number of nodes of the step; in srun, from local_user_init on */
    HPCT_SLURM_PID,    /* of the task; in task_post_fork and task_exit */
    HPCT_SLURM_STATUS, /* as from waitpid; in task_exit */
    HPCT_SLURM_ARRAY,  /* job array, in a script's step; 0: none */
} hpct_slurm_item;

/* False if unknown to Slurm in this context. */
bool hpct_slurm_get(hpct_slurm *slurm, hpct_slurm_item item, uint32_t *value);

typedef enum hpct_spank_step_kind {
    HPCT_SPANK_STEP_TASKS,  /* tasks started by srun */
    HPCT_SPANK_STEP_SCRIPT, /* batch script, or salloc's interactive step */
    HPCT_SPANK_STEP_OTHER,  /* Slurm's own steps, such as extern */
} hpct_spank_step_kind;
hpct_spank_step_kind hpct_slurm_step_kind(uint32_t step);

/* Global number of the node's task `local`. False if unknown. */
bool hpct_slurm_task_of(hpct_slurm *slurm, uint32_t local, uint32_t *task);

/* In slurmstepd: the step's user with all groups; freed with hpct_spank_person_free. False if
 * unknown. */
bool hpct_slurm_person(hpct_slurm *slurm, hpct_spank_person *person);

/* In slurmstepd: bytes of memory of the job on this node; 0 if not limited. */
uint64_t hpct_slurm_memory(hpct_slurm *slurm);

/* The step's environment (in task_init: the task's). */
hpct_cluster_environment hpct_slurm_environment(hpct_slurm *slurm);

/* Sets a variable in that environment, or unsets it if value is NULL. HPCT_ERR_INTERNAL naming it.
 * `slurm` is an hpct_slurm; this is an hpct_cluster_variable_sink. */
hpct_status hpct_slurm_set(void *slurm, const char *name, const char *value);

/* Prints to the user who waits for the command or step, and to the daemon's log. */
void hpct_slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void hpct_slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
