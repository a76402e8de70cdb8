/* agent/comm/peers.h - TCP connections of a rank to some others, on which waiting ranks sleep in
 * the kernel instead of spinning. Independent of contents. */
#ifndef HPCT_AGENT_COMM_PEERS_H
#define HPCT_AGENT_COMM_PEERS_H

#include "agent/comm/comm.h"

#include <sys/uio.h>

typedef struct hpct_comm_peers hpct_comm_peers;

/* Connects to the ranks that are true in wanted[size], which must be mutual. Addresses are
 * exchanged over `comm`; collective. Both ends authenticate with comm->auth; data is not
 * authenticated afterwards. Errors are agreed on: HPCT_ERR_PEER on all ranks if one cannot connect
 * in time. */
hpct_status hpct_comm_peers_open(hpct_comm_peers **out, hpct_comm *comm, const bool *wanted,
                                 int seconds);
void hpct_comm_peers_close(hpct_comm_peers *peers); /* NULL is allowed */

/* The ranks that connect, and how they exchange addresses. */
typedef struct hpct_comm_peers_group {
    int rank, size;
    const hpct_auth *auth;
    /* all[size][bytes] receives each rank's mine[bytes], by rank. Collective. */
    hpct_status (*deal)(void *argument, const void *mine, void *all, size_t bytes);
    void *argument;
    hpct_comm *comm; /* to agree on errors; NULL: errors are local and reported by heartbeats */
} hpct_comm_peers_group;

/* The same for ranks without a communicator. */
hpct_status hpct_comm_peers_connect(hpct_comm_peers **out, const hpct_comm_peers_group *group,
                                    const bool *wanted, int seconds);

/* Progressed while hpct_comm_peers_exchange waits: `move` is called when `fd` is readable. */
void hpct_comm_peers_set_aside(hpct_comm_peers *peers, int fd, hpct_status (*move)(void *argument),
                               void *argument);

int hpct_comm_peers_fd(const hpct_comm_peers *peers,
                       int rank); /* owned by peers; -1: not connected */

/* For direct users of the socket: the status for a broken connection, after the watch had time to
 * name the lost rank and exit. */
hpct_status hpct_comm_peers_lost(int rank, const char *how);

#define HPCT_COMM_PEERS_PIECES 4

/* Sends one message to a rank and receives one from a rank (possibly the same), each in consecutive
 * pieces; returns when both are complete. Empty ones are not sent. No timeout, as in MPI: the watch
 * (agent/comm/watch.h) ends a process whose peer died or hung. Returns HPCT_ERR_PEER if a
 * connection broke and the watch has not ended the process within some seconds. */
typedef struct hpct_comm_peers_message {
    int rank;
    struct iovec pieces[HPCT_COMM_PEERS_PIECES];
} hpct_comm_peers_message;

hpct_status hpct_comm_peers_exchange(hpct_comm_peers *peers, const hpct_comm_peers_message *out,
                                     const hpct_comm_peers_message *in);

#endif
