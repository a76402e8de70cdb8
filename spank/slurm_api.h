/* spank/slurm_api.h - all that the plugin asks of Slurm, so that nothing but slurm_api.c,
 * slurm_release.c and plugin.c includes Slurm's headers and the rest links and is tested without
 * it. */
#ifndef HPCT_SPANK_SLURM_API_H
#define HPCT_SPANK_SLURM_API_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/cluster/config.h"
#include "spank/child.h"

typedef struct spank_handle hpct_slurm; /* what SPANK calls a spank_t points to */

typedef enum hpct_slurm_item {
    HPCT_SLURM_UID,
    HPCT_SLURM_GID,
    HPCT_SLURM_JOB,
    HPCT_SLURM_STEP,
    HPCT_SLURM_NODE,        /* this node's place in the step */
    HPCT_SLURM_LOCAL_TASKS, /* on this node */
    HPCT_SLURM_TOTAL_TASKS,
    HPCT_SLURM_TASK, /* this task's place on the node; in task_init, and task_exit, as is the next
                      */
    HPCT_SLURM_RANK,
    HPCT_SLURM_NODES,  /* of the step; in srun, from local_user_init on */
    HPCT_SLURM_PID,    /* of the task; in task_post_fork and task_exit */
    HPCT_SLURM_STATUS, /* of the task, as waitpid says it; in task_exit */
    HPCT_SLURM_ARRAY,  /* the job array, in a script's step; 0: none */
} hpct_slurm_item;

/* False when Slurm does not know it in this context. */
bool hpct_slurm_get(hpct_slurm *slurm, hpct_slurm_item item, uint32_t *value);

typedef enum hpct_step_kind {
    HPCT_STEP_TASKS,  /* of srun */
    HPCT_STEP_SCRIPT, /* the batch script, or salloc's interactive step */
    HPCT_STEP_OTHER,  /* Slurm's own, such as extern */
} hpct_step_kind;
hpct_step_kind hpct_slurm_step_kind(uint32_t step);

/* The global number of the node's task `local`. False when Slurm does not know it. */
bool hpct_slurm_task_of(hpct_slurm *slurm, uint32_t local, uint32_t *task);

/* In slurmstepd: the step's user with all his groups; to be freed with hpct_person_free. False when
 * Slurm does not say. */
bool hpct_slurm_person(hpct_slurm *slurm, hpct_person *person);

/* In slurmstepd: bytes of memory that the job has on this node; 0 where Slurm does not count it. */
uint64_t hpct_slurm_memory(hpct_slurm *slurm);

/* The step's environment (in task_init: the task's), looked up where it is. */
hpct_environment hpct_slurm_environment(hpct_slurm *slurm);

/* Sets a variable there, or takes it away when value is NULL. HPCT_ERR_INTERNAL naming it. */
hpct_status hpct_slurm_set(hpct_slurm *slurm, const char *name, const char *value);

/* To the user who waits for the command or the step, and to the daemon's log. */
void hpct_slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void hpct_slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
