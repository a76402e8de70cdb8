/* agent/comm/exchange.h - a small record of every rank to every rank over TCP, through rank 0's
 * address in the cluster's config: how ranks agree before there is any communicator. */
#ifndef HPCT_COMM_EXCHANGE_H
#define HPCT_COMM_EXCHANGE_H

#include "agent/cluster/config.h"
#include "base/auth/proof.h"

#include <hpctrain/status.h>
#include <stddef.h>

/* Where the ranks of a config with addresses meet, and by what they know each other. */
typedef struct hpct_meeting {
    const hpct_config *config;
    const hpct_auth *auth;
    int listen_fd; /* rank 0's, at its address, where nobody else accepts meanwhile; it stays the
                      caller's */
    int seconds;   /* that they have to come */
} hpct_meeting;

/* all[size][bytes] receives each rank's mine[bytes], by rank. Collective. HPCT_ERR_PEER, naming the
 * first rank that did not come within the time. */
hpct_status hpct_exchange(const hpct_meeting *meeting, const void *mine, void *all, size_t bytes);

#endif
