/* agent/launch/nodes.h - the nodes of this job that can run tasks: those that Slurm still counts
 * among the job's, calls healthy, and whose slurmd accepts a connection. Slurm itself notices a
 * node that is switched off only after SlurmdTimeout, 5 minutes by default. */
#ifndef HPCT_AGENT_LAUNCH_NODES_H
#define HPCT_AGENT_LAUNCH_NODES_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_launch_job_node {
    char *name;
    int failures;  /* so far, counted by the caller */
    bool is_slow;  /* set by the caller */
    bool is_there; /* as of the last look */
    char why[128]; /* if it is not: "state down", "slurmd does not answer" */
} hpct_launch_job_node;

typedef struct hpct_launch_job_nodes {
    hpct_launch_job_node *nodes;
    int count;
} hpct_launch_job_nodes;

/* All nodes of the job, as its environment lists them. HPCT_ERR_CONFIG: it lists none. */
hpct_status hpct_launch_job_nodes_open(hpct_launch_job_nodes *out, const char *list);
void hpct_launch_job_nodes_close(hpct_launch_job_nodes *nodes);

/* Updates is_there and why of all: asks squeue and sinfo, then connects, to all at once. If no node
 * accepts a connection, connections are taken to be blocked, and Slurm's word counts alone.
 * HPCT_ERR_IO if Slurm cannot be asked: nothing is changed. */
hpct_status hpct_launch_job_nodes_look(hpct_launch_job_nodes *nodes, const char *job);

/* NULL if it is not among them. */
hpct_launch_job_node *hpct_launch_job_nodes_find(hpct_launch_job_nodes *nodes, const char *name);

/* What `sinfo` prints of a node in the columns name, state, address and port. */
typedef struct hpct_launch_sinfo_line {
    char name[256], state[64], address[256];
    int port;
} hpct_launch_sinfo_line;

/* False for a line of another form. */
bool hpct_launch_sinfo_line_parse(const char *line, hpct_launch_sinfo_line *out);

/* Whether a node in this state, as sinfo abbreviates it ("mix", "down*"), can run tasks. */
bool hpct_launch_sinfo_state_runs(const char *state);

#endif
