/* agent/launch/srun_line.h - what srun prints on standard error about tasks that ended and nodes
 * that failed. Slurm has no other way to ask for it without accounting; the messages are the same
 * from 22.05 to 26.05. */
#ifndef HPCT_AGENT_LAUNCH_SRUN_LINE_H
#define HPCT_AGENT_LAUNCH_SRUN_LINE_H

#include <stdbool.h>

typedef enum hpct_launch_srun_event {
    HPCT_LAUNCH_SRUN_EXITED,      /* tasks ended with a status that is not 0 */
    HPCT_LAUNCH_SRUN_KILLED,      /* tasks were ended by a signal */
    HPCT_LAUNCH_SRUN_NODE_FAILED, /* Slurm has given the node up, or tasks could not be started
                                     there */
} hpct_launch_srun_event;

typedef struct hpct_launch_srun_line {
    hpct_launch_srun_event event;
    char nodes[256]; /* as srun prints them: "node2", "node[0-3]" */
    int code; /* of a task, as a shell has it: exit status, or 128 and the signal; 0: unknown */
    bool has_first; /* task 0 is among them */
} hpct_launch_srun_line;

/* False for any other line. `line` has no newline. */
bool hpct_launch_srun_line_parse(const char *line, hpct_launch_srun_line *out);

/* Whether slurmstepd says in this line that a task's program cannot be started, which *what names
 * with the reason: "train.py: No such file or directory". */
bool hpct_launch_srun_line_no_program(const char *line, const char **what);

#endif
