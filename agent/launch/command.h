/* agent/launch/command.h - command lines of srun: the user's for the first run, and with the nodes
 * and tasks that are left for later ones. */
#ifndef HPCT_AGENT_LAUNCH_COMMAND_H
#define HPCT_AGENT_LAUNCH_COMMAND_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* Refuses options of srun with which a step cannot be started again, or not on fewer nodes.
 * HPCT_ERR_USAGE naming the option. */
hpct_status hpct_launch_check_options(char *const *options);

/* Whether the user has chosen nodes, by --nodelist, --exclude or SLURM_HOSTFILE: others are not
 * taken then. */
bool hpct_launch_chooses_nodes(char *const *options);

/* Whether the user has said how many GPUs each node or task has. */
bool hpct_launch_divides_gpus(char *const *options);

/* Whether each task has the node that a list names for it: --distribution=arbitrary. */
bool hpct_launch_is_arbitrary(char *const *options);

/* Whether the step is to go on without a task that failed, as parameter servers do without a
 * worker: by --kill-on-bad-exit=0, or its variable. */
bool hpct_launch_goes_on(char *const *options);

/* Whether the program can be started on this node, or it depends on options where it is. */
bool hpct_launch_finds(char *const *options, const char *program);

/* Where a run's tasks are. */
typedef struct hpct_launch_place {
    int nodes, tasks;
    int per_node;     /* tasks of each node; 0: not all have the same number */
    bool by_task;     /* `list` has a node for each task */
    const char *list; /* of nodes, with commas */
} hpct_launch_place;

/* `place` NULL: the first run. The array belongs to the caller, who frees it and element 0 of it;
 * the strings are the arguments' and, in one block, element 0 and those that were made. NULL: no
 * memory. */
char **hpct_launch_command(char *const *options, char *const *program,
                           const hpct_launch_place *place);

#endif
