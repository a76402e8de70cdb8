/* spank/results.h - what the nodes of a step have to say of its results, to srun: the one place
 * that hears of all of them, and whose status scripts see. Each node's helper, as the user, says
 * that it begins to copy out, and how that has ended. Connections prove the step's key
 * (agent/comm/session.h). Knows nothing of SPANK. */
#ifndef HPCT_SPANK_RESULTS_H
#define HPCT_SPANK_RESULTS_H

#include <hpctrain/status.h>

#include "base/auth/key.h"
#include "spank/stage/out_entry.h"

typedef struct hpct_results_host hpct_results_host;

/* srun: listens at a port from `low` to `high` (0, 0: any), which *port then is, and hears the
 * nodes in a thread. HPCT_ERR_CONFIG when none is free. */
hpct_status hpct_results_serve(hpct_results_host **out, const hpct_key *key, int low, int high,
                               int *port);

typedef struct hpct_results_sum {
    uint32_t nodes;                  /* of the step; 0: none has said anything */
    uint32_t ended;                  /* those that have said how it ended */
    hpct_status status;              /* of the first that could not copy all; else HPCT_OK */
    uint32_t have[HPCT_OUT_ENTRIES]; /* by entry: the nodes where there was something of it */
} hpct_results_sum;

/* Hears no more; frees the host. */
void hpct_results_end(hpct_results_host *host, hpct_results_sum *sum);

/* A node. */
typedef struct hpct_results_way {
    const char *address; /* where srun is, "host:port" */
    const hpct_key *key;
    uint32_t node, nodes;
} hpct_results_way;

/* Says that it begins (`there` NULL), or how it has ended: the status of the copying, and for each
 * entry '1' when there was something of it, else '0'. False when srun has not heard it within
 * `seconds`. */
bool hpct_results_tell(const hpct_results_way *way, hpct_status status, const char *there,
                       double seconds);

#endif
