/* spank/stage/net/broadcast_team.h - the nodes that stage together, their addresses, and this
 * node's index. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_TEAM_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_TEAM_H

#include "base/auth/key.h"

#include <hpctrain/status.h>

#define HPCT_MAX_TEAM 1000000
#define HPCT_MAX_RUN_NAME 63

typedef struct hpct_team {
    char **hosts; /* [count], names or addresses */
    int *ports;   /* [count] */
    int count;
    int index;           /* of this node; -1: not set */
    const char *run;     /* identifies the run, such as "42.0" (job.step) */
    const hpct_key *key; /* of the step; NULL: munge */
    int wait_seconds;    /* timeout for the others to connect */
} hpct_team;

/* Reads a file with one "HOST", "HOST:PORT" or "[ADDRESS]:PORT" per line, in node order; `port` is
 * the default, 0 if every line needs its own. Returns HPCT_ERR_USAGE naming file and line. Freed
 * with hpct_team_free. */
hpct_status hpct_team_read(const char *path, int port, hpct_team *team);
void hpct_team_free(hpct_team *team);

#endif
