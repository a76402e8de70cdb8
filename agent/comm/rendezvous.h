/* agent/comm/rendezvous.h - where rank 0's watch listens and which token the run has: from the
 * cluster's config when it says so, else made by rank 0 and passed through the communicator. */
#ifndef HPCT_COMM_RENDEZVOUS_H
#define HPCT_COMM_RENDEZVOUS_H

#include "agent/cluster/config.h"
#include "agent/comm/comm.h"
#include "agent/comm/frame.h"

#define HPCT_RENDEZVOUS_ADDRESSES 8
#define HPCT_RENDEZVOUS_ADDRESS_SIZE 272
#define HPCT_RENDEZVOUS_HOSTS 6

/* Numeric addresses of a node, IPv6 ones in brackets. */
typedef struct hpct_rendezvous_hosts {
    int num;
    char host[HPCT_RENDEZVOUS_HOSTS][48];
} hpct_rendezvous_hosts;

/* Those by which another node may reach this one; where there are none, the loopback's. */
void hpct_rendezvous_list_hosts(hpct_rendezvous_hosts *hosts);

typedef struct hpct_rendezvous {
    int listen_fd; /* rank 0's, else -1 */
    uint8_t token[HPCT_TOKEN_BYTES];
    int num_addresses;
    char addresses[HPCT_RENDEZVOUS_ADDRESSES][HPCT_RENDEZVOUS_ADDRESS_SIZE];
} hpct_rendezvous;

/* A token that all ranks of a job can make from config->addresses and what they know of the job. It
 * keeps strangers and other runs apart; it is no secret from who reads the job's environment. */
void hpct_rendezvous_token(uint8_t token[HPCT_TOKEN_BYTES], const hpct_config *config);

/* With config->addresses: rank 0 listens on its own port (HPCT_ERR_CONFIG when that is in use); the
 * token is made from what all ranks know of the job and no other job has. */
hpct_status hpct_rendezvous_from_config(hpct_rendezvous *out, const hpct_config *config);

/* Without: rank 0 listens on any free port, and draws the token; collective. */
hpct_status hpct_rendezvous_through(hpct_rendezvous *out, hpct_comm *comm);

#endif
