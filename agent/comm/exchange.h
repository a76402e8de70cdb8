/* agent/comm/exchange.h - exchange of small records between all ranks over TCP, through rank 0's
 * address in the cluster's config, before there is a communicator. */
#ifndef HPCT_AGENT_COMM_EXCHANGE_H
#define HPCT_AGENT_COMM_EXCHANGE_H

#include "base/auth/proof.h"
#include "base/cluster/config.h"

#include <hpctrain/status.h>
#include <stddef.h>

/* How the ranks of a config with addresses connect and authenticate. */
typedef struct hpct_comm_meeting {
    const hpct_cluster_config *config;
    const hpct_auth *auth;
    int listen_fd; /* rank 0's listening socket, not used otherwise meanwhile; owned by the caller
                    */
    int seconds;   /* timeout to connect */
} hpct_comm_meeting;

/* all[size][bytes] receives mine[bytes] of each rank, by rank. Collective. Returns HPCT_ERR_PEER,
 * naming the first missing rank, on timeout. */
hpct_status hpct_comm_exchange(const hpct_comm_meeting *meeting, const void *mine, void *all,
                               size_t bytes);

#endif
