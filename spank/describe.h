/* spank/describe.h - computes one task's config from Slurm's facts about the task and the step,
 * which must agree. Independent of SPANK. */
#ifndef HPCT_SPANK_DESCRIBE_H
#define HPCT_SPANK_DESCRIBE_H

#include "base/cluster/hosts.h"
#include "spank/agree/network.h"
#include "spank/options.h"
#include "spank/ports_check.h"
#include "spank/settings.h"

/* The candidate blocks of ports as one node sees them. */
typedef struct hpct_spank_ports_wanted {
    hpct_spank_port_blocks blocks;
    int node, num_nodes;
    char *const *names; /* [num_nodes] */
} hpct_spank_ports_wanted;

/* From Slurm itself, not the environment. In a step over several components: of the task's
 * component only. */
typedef struct hpct_spank_task_facts {
    uint32_t job, step;
    uint32_t rank, local_rank, node, local_tasks, total_tasks;
    const char *tmpdir;
    hpct_cluster_address_lookup address_of; /* may be NULL */
    bool trusted; /* nodes can authenticate by the step's key or munge; otherwise they communicate
                     only if asked to */
    /* *choice is the number of the chosen block. NULL: 0 */
    hpct_status (*choose)(void *context, const hpct_spank_ports_wanted *wanted, int *choice);
    void *context;
    const hpct_agree_network *network; /* filled by `choose`; may be NULL */
} hpct_spank_task_facts;

/* What nodes need to stage together. */
typedef struct hpct_spank_team_facts {
    char *hosts; /* "HOST:PORT" lines, one per node, to be freed; NULL: they do not connect
                    (hpct_spec_stage_plan) */
    int port;    /* 0: not needed */
} hpct_spank_team_facts;

/* *out (the caller frees it) is complete: layout, ports, gpu, tmpdir, data. Returns
 * HPCT_ERR_CONFIG, with what to do, if the layout cannot be computed. */
hpct_status hpct_spank_task_describe(const hpct_spank_task_facts *facts,
                                     const hpct_spank_choices *choices,
                                     const hpct_spank_settings *settings,
                                     const hpct_cluster_environment *environment,
                                     hpct_spank_team_facts *team, hpct_cluster_config **out);

/* Writes the text to TMPDIR/.hpc-train/NAME, mode 0600, atomically; the caller frees *path. Returns
 * HPCT_ERR_IO naming the file. */
hpct_status hpct_spank_private_write(const char *tmpdir, const char *name, const char *text,
                                     char **path);

#endif
