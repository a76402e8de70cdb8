/* base/net/acceptor.h - a listening socket and its connections until they are authenticated by the
 * step's key (base/auth/proof.h). Unauthenticated connections are limited in number and time and
 * cannot delay tasks of this run: each progresses independently, and if there are too many, those
 * without a valid HELLO are dropped first. Never blocks. */
#ifndef HPCT_BASE_NET_ACCEPTOR_H
#define HPCT_BASE_NET_ACCEPTOR_H

#include "base/net/session.h"

#define HPCT_NET_ACCEPTOR_PENDING 64 /* limit of unauthenticated connections */
#define HPCT_NET_ACCEPTOR_MS 2000    /* timeout of each */

typedef struct hpct_net_acceptor hpct_net_acceptor;

/* Takes ownership of `listen_fd` from hpct_net_link_listen, also on error; `auth` must outlive it.
 * `self` is the rank or index others connect to here. */
hpct_status hpct_net_acceptor_new(hpct_net_acceptor **out, int listen_fd, const hpct_auth *auth,
                                  uint32_t self);
void hpct_net_acceptor_free(
    hpct_net_acceptor *acceptor); /* closes pending connections; NULL is allowed */

/* Readable when hpct_net_acceptor_next has work; call that at least once a second, to detect
 * timeouts.
 */
int hpct_net_acceptor_fd(const hpct_net_acceptor *acceptor);

/* An authenticated connection that has not been accepted yet. */
typedef struct hpct_net_guest {
    int fd;
    hpct_auth_purpose purpose;
    uint32_t from; /* its rank or index */
    hpct_auth_proof proof;
} hpct_net_guest;

/* Progresses all connections; true with an authenticated one: repeat until false. */
bool hpct_net_acceptor_next(hpct_net_acceptor *acceptor, hpct_net_guest *guest);

/* One of the two must follow. Accept notifies the peer and opens the session; false if it has gone,
 * or without memory. */
bool hpct_net_guest_accept(hpct_net_guest *guest, hpct_net_session *session);
void hpct_net_guest_refuse(hpct_net_guest *guest);

#endif
