/* agent/comm/rendezvous.h - address of rank 0's heartbeats and key of the ranks: from the cluster's
 * config and the step's key, else through the communicator. */
#ifndef HPCT_AGENT_COMM_RENDEZVOUS_H
#define HPCT_AGENT_COMM_RENDEZVOUS_H

#include "agent/comm/comm.h"
#include "base/auth/key.h"
#include "base/cluster/config.h"

#define HPCT_COMM_RENDEZVOUS_ADDRESSES 8
#define HPCT_COMM_RENDEZVOUS_ADDRESS_SIZE 272
#define HPCT_COMM_RENDEZVOUS_HOSTS 6

/* Numeric addresses of a node, IPv6 ones in brackets. */
typedef struct hpct_comm_rendezvous_hosts {
    int num;
    char host[HPCT_COMM_RENDEZVOUS_HOSTS][48];
} hpct_comm_rendezvous_hosts;

/* Addresses by which other nodes may reach this one; the loopback's if there is none. */
void hpct_comm_rendezvous_list_hosts(hpct_comm_rendezvous_hosts *hosts);

typedef struct hpct_comm_rendezvous {
    int listen_fd; /* on rank 0, else -1 */
    int num_addresses;
    char addresses[HPCT_COMM_RENDEZVOUS_ADDRESSES][HPCT_COMM_RENDEZVOUS_ADDRESS_SIZE];
} hpct_comm_rendezvous;

/* With config->addresses and a key: rank 0 listens on its own port (HPCT_ERR_CONFIG if in use). */
hpct_status hpct_comm_rendezvous_from_config(hpct_comm_rendezvous *out,
                                             const hpct_cluster_config *config);

/* Without: rank 0 listens on any free port; collective. */
hpct_status hpct_comm_rendezvous_through(hpct_comm_rendezvous *out, hpct_comm *comm);

/* The key in the file named by HPC_TRAIN_KEY_FILE, which the plugin sets. Returns HPCT_ERR_CONFIG,
 * with how to get a key, if there is none. Freed with hpct_auth_key_free, like the one below. */
bool hpct_comm_rendezvous_has_key(void); /* true if the variable is set */
hpct_status hpct_comm_rendezvous_read_key(hpct_auth_key **out);

/* Without it: rank 0 generates a key and distributes it through the communicator, as secret as that
 * is; collective. */
hpct_status hpct_comm_rendezvous_draw_key(hpct_auth_key **out, hpct_comm *comm);

#endif
