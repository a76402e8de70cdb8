/* agent/launch/step_facts.h - a step of this job: `scontrol show step` lists it, and `sattach
 * --layout` says which task is where. */
#ifndef HPCT_AGENT_LAUNCH_STEP_FACTS_H
#define HPCT_AGENT_LAUNCH_STEP_FACTS_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct hpct_launch_step_facts {
    char id[48]; /* "12.3"; of a job array "12_4.3" */
    int nodes, tasks;
    char **hosts; /* [tasks], the node of each task */
} hpct_launch_step_facts;

/* From the text of `scontrol --oneliner show step`: the step that process `srun` has started,
 * without hosts. False if there is none. */
bool hpct_launch_step_facts_parse(const char *text, pid_t srun, hpct_launch_step_facts *out);

/* From the text of `sattach --layout`: out->hosts. False if it does not name the node of each
 * task. */
bool hpct_launch_step_facts_parse_layout(char *text, hpct_launch_step_facts *out);

/* Asks Slurm. HPCT_ERR_NO_INPUT if the step has not begun or has ended. */
hpct_status hpct_launch_step_facts_ask(const char *job, pid_t srun, hpct_launch_step_facts *out);

void hpct_launch_step_facts_free(hpct_launch_step_facts *facts);

#endif
