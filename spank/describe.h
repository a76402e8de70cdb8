/* spank/describe.h - one task's config, from what Slurm says of the task and of the step, which
 * must agree. Knows nothing of SPANK. */
#ifndef HPCT_SPANK_DESCRIBE_H
#define HPCT_SPANK_DESCRIBE_H

#include "agent/cluster/hosts.h"
#include "spank/options.h"
#include "spank/ports_check.h"
#include "spank/settings.h"

/* The blocks of ports of which a step wants one, as one node sees them. */
typedef struct hpct_ports_wanted {
    hpct_port_blocks blocks;
    int node, num_nodes;
    char *const *names; /* [num_nodes] */
    char step[32];      /* "42.0" */
} hpct_ports_wanted;

/* Slurm's own word, not the environment's. In a step over several components it is that of the
 * task's component alone. */
typedef struct hpct_task_facts {
    uint32_t job, step;
    uint32_t rank, local_rank, node, local_tasks, total_tasks;
    const char *tmpdir;
    hpct_address_lookup address_of; /* may be NULL */
    bool trusted; /* nodes can prove who they are, by the step's key or by munge: without, they send
                     to each other only on demand */
    /* *choice becomes the number of one of the blocks. NULL: 0, the first */
    hpct_status (*choose)(void *context, const hpct_ports_wanted *wanted, int *choice);
    void *context;
} hpct_task_facts;

/* What the nodes need to stage together. */
typedef struct hpct_team_facts {
    char *hosts; /* "HOST:PORT" lines, one for each node, to be freed; NULL: one node, or no staging
                  */
    int port;    /* 0: none is needed */
} hpct_team_facts;

/* *out (to be freed) has everything in it: layout, ports, gpu, tmpdir, data. HPCT_ERR_CONFIG when
 * the layout cannot be worked out, with what to do about it. */
hpct_status hpct_task_describe(const hpct_task_facts *facts, const hpct_choices *choices,
                               const hpct_settings *settings, const hpct_environment *environment,
                               hpct_team_facts *team, hpct_config **out);

/* Writes the text to TMPDIR/.hpc-train/NAME, 0600, whole or not at all; *path is to be freed.
 * HPCT_ERR_IO naming the file. */
hpct_status hpct_private_write(const char *tmpdir, const char *name, const char *text, char **path);

#endif
