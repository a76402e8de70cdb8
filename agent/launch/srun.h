/* agent/launch/srun.h - one run of srun: its standard error is passed on and read, signals are
 * passed on, and once a task has failed it ends in seconds, whatever holds the rest up. */
#ifndef HPCT_AGENT_LAUNCH_SRUN_H
#define HPCT_AGENT_LAUNCH_SRUN_H

#include "agent/launch/step_facts.h"

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_launch_srun_end {
    int status;         /* as a shell has it: exit status, or 128 and the signal; of the task that
                           ended first, as srun then kills the others */
    bool others_failed; /* the step has gone on without failed tasks, and task 0 is none of them */
    double seconds;     /* that it ran */
    char failed[256];   /* the node whose task or daemon failed first; "": not known, or several */
    char how[128];      /* what srun said of it */
    bool alike;         /* all tasks that failed have ended with this exit status */
    char program[256];  /* that could be started nowhere, and why; "": not said */
    char slow[1024];    /* the nodes that fit --check has refused as slow, as it says them */
    bool began;         /* Slurm has shown the step, or a task of it has ended */
    bool gave_up;       /* srun was killed, as a node of the step is gone */
    bool stopped;       /* it was asked to end: SIGTERM, SIGINT or SIGHUP came */
    bool asked_to_grow; /* because of `grows` */
} hpct_launch_srun_end;

typedef struct hpct_launch_srun {
    char *const *arguments; /* of srun, NULL-terminated */
    const char *job;
    hpct_launch_step_facts
        *facts; /* of its step, empty until Slurm shows it; the caller frees them */
    void *context;
    bool goes_on; /* without failed tasks */
    /* Called every few seconds once a task has failed, unless it goes on: whether a node of the
     * step is gone, which srun would wait for. Then srun is killed, and the step cancelled. */
    bool (*lacks_node)(void *context);
    /* Called every half minute while all is well: whether the step is to start again on more nodes.
     * Then the program is asked to end with a checkpoint, by SIGUSR1. NULL: never. */
    bool (*grows)(void *context);
} hpct_launch_srun;

/* Whether an exit status says that the same would happen again, or that another job is to go on:
 * those of <hpctrain/status.h> but HPCT_ERR_PEER. */
bool hpct_launch_status_explains(int status);

/* Before the first run: blocks the signals that are passed on, for the whole process. */
void hpct_launch_srun_block_signals(void);
void hpct_launch_srun_unblock_signals(void); /* as they were */

/* Between two runs: waits so long; whether SIGTERM, SIGINT or SIGHUP has come. */
bool hpct_launch_srun_stopped(int seconds);

/* HPCT_ERR_IO if srun cannot be started. */
hpct_status hpct_launch_srun_run(hpct_launch_srun *srun, hpct_launch_srun_end *end);

#endif
