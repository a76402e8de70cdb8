/* spank/agree/results.h - reports of the nodes to srun about stage-out; srun's exit status reflects
 * them. Each node's helper, as the user, reports when it starts and how it ended. Connections are
 * authenticated by the step's key (base/net/session.h). Independent of SPANK. */
#ifndef HPCT_SPANK_AGREE_RESULTS_H
#define HPCT_SPANK_AGREE_RESULTS_H

#include <hpctrain/status.h>

#include "base/auth/key.h"
#include "base/net/frame.h"
#include "spank/spec/out_entry.h"

typedef struct hpct_agree_results_host hpct_agree_results_host;

/* srun: listens on a port from `low` to `high` (0, 0: any), returned in *port, and receives reports
 * in a thread. Returns HPCT_ERR_CONFIG if no port is free. */
hpct_status hpct_agree_results_serve(hpct_agree_results_host **out, const hpct_auth_key *key,
                                     int low, int high, int *port);

typedef struct hpct_agree_results_sum {
    uint32_t nodes;     /* number of nodes of the step; 0: no report yet */
    uint32_t ended;     /* nodes that have reported the end */
    hpct_status status; /* of the first node that did not copy everything; else HPCT_OK */
    uint32_t have[HPCT_SPEC_OUT_ENTRIES]; /* by entry: number of nodes that had it */
    char where[HPCT_SPEC_OUT_ENTRIES][HPCT_NET_FRAME_NODE]; /* the name of the first of them */
} hpct_agree_results_sum;

/* Stops listening; frees the host. */
void hpct_agree_results_end(hpct_agree_results_host *host, hpct_agree_results_sum *sum);

/* A node's side. */
typedef struct hpct_agree_results_way {
    const char *address; /* address of srun, "host:port" */
    const hpct_auth_key *key;
    uint32_t node, nodes;
    const char *name; /* of the node, for users */
} hpct_agree_results_way;

/* Reports the start (`there` NULL) or the end: the status, and per entry '1' if it existed, else
 * '0'. Returns false if srun did not acknowledge within `seconds`. */
bool hpct_agree_results_tell(const hpct_agree_results_way *way, hpct_status status,
                             const char *there, double seconds);

#endif
