/* agent/comm/rendezvous.h - where rank 0's watch listens, and which key the ranks have: as the
 * cluster's config and the step's key say, else passed through the communicator. */
#ifndef HPCT_COMM_RENDEZVOUS_H
#define HPCT_COMM_RENDEZVOUS_H

#include "agent/cluster/config.h"
#include "agent/comm/comm.h"
#include "base/auth/key.h"

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
    int num_addresses;
    char addresses[HPCT_RENDEZVOUS_ADDRESSES][HPCT_RENDEZVOUS_ADDRESS_SIZE];
} hpct_rendezvous;

/* With config->addresses and a key: rank 0 listens on its own port (HPCT_ERR_CONFIG when that is in
 * use). */
hpct_status hpct_rendezvous_from_config(hpct_rendezvous *out, const hpct_config *config);

/* Without: rank 0 listens on any free port; collective. */
hpct_status hpct_rendezvous_through(hpct_rendezvous *out, hpct_comm *comm);

/* The key that the file named by HPC_TRAIN_KEY_FILE has: a step's that Slurm starts with the
 * plugin. HPCT_ERR_CONFIG, saying how to come by one, where there is none. Freed with
 * hpct_key_free, as the next. */
bool hpct_rendezvous_has_key(void); /* or is to have: the variable is set */
hpct_status hpct_rendezvous_read_key(hpct_key **out);

/* Without: a key that rank 0 draws and the communicator carries, as secret as that is; collective.
 */
hpct_status hpct_rendezvous_draw_key(hpct_key **out, hpct_comm *comm);

#endif
