/* Ends the step elsewhere by Slurm's library. As root only the step itself, because the ids of
 * other components are known only from the user's environment. */
#include "spank/tell.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/cluster/tasks.h"
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/marker.h"
#include "spank/options.h"
#include "spank/slurm_release.h"
#include "spank/timed_child.h"
#include "spank/turn.h"

/* Nodes with the same error end their tasks themselves meanwhile, with their own status, which
 * killed tasks lack. Together with hpct_spank_turn_ms it must be shorter than srun's wait for the
 * end of a step (KillWait + 2 s): while slurmstepd waits here, its tasks' status is not reported.
 */
#define BEFORE_MS 2000

/* From HPCT_SPANK_TASK_SIGNAL to SIGKILL: tasks waiting in staging for this node's tasks end
 * themselves. */
#define LEAVE_MS 500

#define TELL_SECONDS 5

/* A component may not have started its tasks yet. */
#define AGAIN_MS 2000

/* Job id of component i, or -1. (srun's own allocation has only the older variable.) */
static long component_job(const hpct_cluster_environment *environment, int i)
{
    char name[64];
    snprintf(name, sizeof name, "SLURM_JOB_ID_HET_GROUP_%d", i);
    long job = hpct_cluster_environment_number(environment, name, UINT32_MAX, -1);
    snprintf(name, sizeof name, "SLURM_JOB_ID_PACK_GROUP_%d", i);
    return job >= 0 ? job : hpct_cluster_environment_number(environment, name, UINT32_MAX, -1);
}

/* Components of a heterogeneous job are separate jobs. */
static void tell_components(hpct_slurm *slurm, uint32_t job, uint32_t step)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    bool told = false;
    hpct_pause_ms(BEFORE_MS);
    for (int go = 0; go < 2 && !told; go++) {
        long each;
        if (go > 0)
            hpct_pause_ms(AGAIN_MS);
        told = true;
        for (int i = 0; (each = component_job(&environment, i)) >= 0; i++) {
            if (each != (long) job)
                told = hpct_slurm_end_step((uint32_t) each, step) && told;
        }
    }
}

typedef struct telling {
    hpct_slurm *slurm;
    uint32_t job, step;
} telling;

static hpct_status tell_all(void *context)
{
    const telling *t = context;
    tell_components(t->slurm, t->job, t->step);
    return HPCT_OK;
}

/* Whether the step has tasks on other nodes. */
static bool has_others(hpct_slurm *slurm, uint32_t *nodes)
{
    uint32_t tasks = 0;
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    return hpct_slurm_get(slurm, HPCT_SLURM_NODES, nodes) &&
           hpct_slurm_get(slurm, HPCT_SLURM_TOTAL_TASKS, &tasks) &&
           (*nodes > 1 || tasks > 1 ||
            hpct_cluster_environment_number(&environment, "SLURM_STEP_NUM_TASKS",
                                            HPCT_CLUSTER_MAX_TASKS, -1) > (long) tasks);
}

/* Components first: Slurm may kill the caller with the step. Runs in a child, as other threads of
 * slurmstepd may hold locks at the fork, and the user can stop it. */
void hpct_spank_tell(hpct_slurm *slurm, uint32_t job, uint32_t step)
{
    uint32_t nodes = 0, number = 0;
    hpct_spank_person person = {0};
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    telling t = {.slurm = slurm, .job = job, .step = step};
    hpct_spank_timed_child timed_child = {.what = "telling the components",
                                          .seconds = TELL_SECONDS,
                                          .as = &person,
                                          .work = tell_all,
                                          .context = &t};
    bool components = component_job(&environment, 0) >= 0 && hpct_slurm_person(slurm, &person);
    bool others = has_others(slurm, &nodes);
    if (components)
        hpct_spank_timed_child_start(&timed_child);
    if (others && hpct_slurm_get(slurm, HPCT_SLURM_NODE, &number))
        hpct_pause_ms(BEFORE_MS + hpct_spank_turn_ms(number, nodes));
    if (components && hpct_spank_timed_child_await(&timed_child) != HPCT_OK)
        hpct_slurm_error("%s", hpct_last_error());
    if (others) {
        hpct_slurm_signal_step(job, step, HPCT_SPANK_TASK_SIGNAL);
        hpct_pause_ms(LEAVE_MS);
        hpct_slurm_signal_step(job, step, SIGKILL);
    }
    hpct_spank_person_free(&person);
}
