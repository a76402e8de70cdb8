/* agent/comm/peers.h - TCP connections of a rank to some of the others, for messages between them:
 * whoever waits on one sleeps in the kernel, where a library that looks for messages again and
 * again takes the core from who has work. Knows nothing of what is sent. */
#ifndef HPCT_COMM_PEERS_H
#define HPCT_COMM_PEERS_H

#include "agent/comm/comm.h"

#include <sys/uio.h>

typedef struct hpct_peers hpct_peers;

/* Connects to the ranks whose entry in wanted[size] is true; they must want this one, too.
 * Collective over `comm`, through which addresses go. Both ends prove that they have comm->auth's
 * key; what is sent then is not sealed. Failures are agreed on: HPCT_ERR_PEER on all ranks when one
 * cannot reach another within the time. */
hpct_status hpct_peers_open(hpct_peers **out, hpct_comm *comm, const bool *wanted, int seconds);
void hpct_peers_close(hpct_peers *peers); /* allows NULL */

/* The ranks that connect, and what tells each where the others listen. */
typedef struct hpct_peers_group {
    int rank, size;
    const hpct_auth *auth;
    /* all[size][bytes] receives each rank's mine[bytes], by rank. Collective. */
    hpct_status (*deal)(void *argument, const void *mine, void *all, size_t bytes);
    void *argument;
    hpct_comm *comm; /* over which failures are agreed on; NULL: they are this rank's own, and the
                        watch tells them */
} hpct_peers_group;

/* The same without a communicator of just these ranks. */
hpct_status hpct_peers_connect(hpct_peers **out, const hpct_peers_group *group, const bool *wanted,
                               int seconds);

/* What else moves while hpct_peers_exchange waits: called when `fd` is readable. */
void hpct_peers_set_aside(hpct_peers *peers, int fd, hpct_status (*move)(void *argument),
                          void *argument);

int hpct_peers_fd(const hpct_peers *peers, int rank); /* still owned; -1: not connected */

/* For who uses that: what to return when the connection broke, once the watch has had the time to
 * say who was lost first, and to end this process. */
hpct_status hpct_peers_lost(int rank, const char *how);

#define HPCT_PEERS_PIECES 4

/* One message to a rank and one from a rank (which may be the same), each in pieces that follow one
 * another; returns when both are through. Empty ones are not sent. Like MPI's, the wait has no end
 * of its own: the watch (agent/comm/watch.h) ends a process whose peer died or stopped.
 * HPCT_ERR_PEER when a connection broke and the watch has not said why for some seconds. */
typedef struct hpct_peers_message {
    int rank;
    struct iovec pieces[HPCT_PEERS_PIECES];
} hpct_peers_message;

hpct_status hpct_peers_exchange(hpct_peers *peers, const hpct_peers_message *out,
                                const hpct_peers_message *in);

#endif
