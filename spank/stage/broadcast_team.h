/* spank/stage/broadcast_team.h - the nodes that stage together: where each listens, and which of
 * them this one is. */
#ifndef HPCT_STAGE_BROADCAST_TEAM_H
#define HPCT_STAGE_BROADCAST_TEAM_H

#include "base/auth/key.h"

#include <hpctrain/status.h>

#define HPCT_MAX_TEAM 1000000
#define HPCT_MAX_RUN_NAME 63

typedef struct hpct_team {
    char **hosts; /* [count], names or addresses */
    int *ports;   /* [count] */
    int count;
    int index;           /* of this node; -1: not said yet */
    const char *run;     /* what tells this run from others, such as "42.0" (job.step) */
    const hpct_key *key; /* of the step; NULL: munge tells who is who */
    int wait_seconds;    /* how long the others may take to come */
} hpct_team;

/* Reads a file with one "HOST", "HOST:PORT" or "[ADDRESS]:PORT" per line, in the order of the
 * nodes; `port` is that of hosts without one, 0 when every line must have its own.
 * HPCT_ERR_USAGE naming file and line. Freed with hpct_team_free. */
hpct_status hpct_team_read(const char *path, int port, hpct_team *team);
void hpct_team_free(hpct_team *team);

#endif
