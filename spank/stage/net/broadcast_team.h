/* spank/stage/net/broadcast_team.h - the nodes that stage together, their addresses, this node's
 * index, and the two trees over them.
 *
 * Each tree carries every other block. A node that has children in one tree is a leaf in the other,
 * so that each sends about as much as it receives, and a block reaches the last of n nodes after
 * 2 log2 n steps. P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan, Parallel Computing 35 (2009). */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_TEAM_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_TEAM_H

#include <hpctrain/status.h>

#include "base/auth/key.h"

#define HPCT_STAGE_MAX_TEAM 1000000
#define HPCT_STAGE_MAX_RUN_NAME 63

typedef struct hpct_stage_team {
    char **hosts; /* [count], names or addresses */
    int *ports;   /* [count] */
    int count;
    int index;                /* of this node; -1: not set */
    const char *run;          /* identifies the run, such as "42.0" (job.step) */
    const hpct_auth_key *key; /* of the step; NULL: munge */
    int wait_seconds;         /* timeout for the others to connect */
} hpct_stage_team;

/* Reads a file with one "HOST", "HOST:PORT" or "[ADDRESS]:PORT" per line, in node order; `port` is
 * the default, 0 if every line needs its own. Returns HPCT_ERR_USAGE naming file and line. Freed
 * with hpct_stage_team_free. */
hpct_status hpct_stage_team_read(const char *path, int port, hpct_stage_team *team);
void hpct_stage_team_free(hpct_stage_team *team);

#define HPCT_STAGE_NUM_TREES 2
#define HPCT_STAGE_MAX_CHILDREN 2

/* Position of node `me` of 0 … count - 1 in tree 0 or 1. Node 0, the reader, is above both roots.
 * Returns the number of children; *parent is -1 for node 0. */
int hpct_stage_tree_place(int tree, int count, int me, int *parent,
                          int children[HPCT_STAGE_MAX_CHILDREN]);

#endif
