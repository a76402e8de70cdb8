/* Slurm's library does the telling. As root nothing is ended but the step itself: the numbers of
 * other jobs are known from the environment alone, which is the user's. */
#include "spank/tell.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/cluster/number.h"
#include "agent/cluster/tasks.h"
#include "spank/marker.h"
#include "spank/options.h"
#include "spank/slurm_release.h"
#include "spank/turn.h"

/* Nodes on which the same fails end their tasks by themselves meanwhile, each with its own status,
 * which a killed task has not. Together with a turn it must be less than srun gives a step to end
 * (KillWait and 2 s): while slurmstepd waits here, the status of its tasks is not known. */
#define BEFORE_MS 2000

/* A component may not have started its tasks yet. */
#define AGAIN_MS 2000

static void pause_ms(int milliseconds)
{
    nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}

static long number_of(const hpct_environment *environment, const char *name, long max)
{
    const char *text = environment->get(environment->context, name);
    long value = -1;
    return text != NULL && hpct_number_parse(text, 0, max, &value) ? value : -1;
}

/* The job of component i, or -1. (srun's own allocation has only the older of the two names.) */
static long component_job(const hpct_environment *environment, int i)
{
    char name[64];
    snprintf(name, sizeof name, "SLURM_JOB_ID_HET_GROUP_%d", i);
    long job = number_of(environment, name, UINT32_MAX);
    snprintf(name, sizeof name, "SLURM_JOB_ID_PACK_GROUP_%d", i);
    return job >= 0 ? job : number_of(environment, name, UINT32_MAX);
}

void hpct_tell_components(hpct_slurm *slurm, uint32_t job, uint32_t step)
{
    hpct_environment environment = hpct_slurm_environment(slurm);
    if (component_job(&environment, 0) < 0)
        return;
    bool told = false;
    pause_ms(BEFORE_MS);
    for (int go = 0; go < 2 && !told; go++) {
        long each;
        if (go > 0)
            pause_ms(AGAIN_MS);
        told = true;
        for (int i = 0; (each = component_job(&environment, i)) >= 0; i++) {
            if (each != (long) job)
                told = hpct_slurm_end_step((uint32_t) each, step) && told;
        }
    }
}

/* Other threads of slurmstepd may have held a lock at the fork, for which the child would wait. */
static void end_in_time(void)
{
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(5);
}

pid_t hpct_tell_components_as_user(hpct_slurm *slurm, uint32_t job, uint32_t step)
{
    hpct_person person = {0};
    hpct_environment environment = hpct_slurm_environment(slurm);
    if (component_job(&environment, 0) < 0 || !hpct_slurm_person(slurm, &person))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        end_in_time();
        if (hpct_person_become(&person))
            hpct_tell_components(slurm, job, step);
        _exit(0);
    }
    hpct_person_free(&person);
    return child;
}

void hpct_tell_step_failed(hpct_slurm *slurm, uint32_t job, uint32_t step)
{
    uint32_t nodes = 0, number = 0, tasks = 0;
    hpct_environment environment = hpct_slurm_environment(slurm);
    if (!hpct_slurm_get(slurm, HPCT_SLURM_NODES, &nodes) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_TOTAL_TASKS, &tasks))
        return;
    if (nodes < 2 && tasks < 2 &&
        number_of(&environment, "SLURM_STEP_NUM_TASKS", HPCT_MAX_TASKS) <= (long) tasks)
        return; /* nobody else is there */
    if (hpct_slurm_get(slurm, HPCT_SLURM_NODE, &number))
        pause_ms(BEFORE_MS + hpct_turn_ms(number, nodes));
    hpct_slurm_cancel_step(job, step);
}
