/* agent/comm/acceptor.h - a listening socket, and what connects to it until it has proved that it
 * has the step's key (base/auth/proof.h). Those who have not are few, apart, and timed; nothing
 * that they do keeps a task of this run waiting: each connection moves for itself, and where there
 * are too many, those go first that have said nothing of use. Never blocks. */
#ifndef HPCT_COMM_ACCEPTOR_H
#define HPCT_COMM_ACCEPTOR_H

#include "agent/comm/session.h"

#define HPCT_ACCEPTOR_PENDING 64 /* connections that have not proved themselves */
#define HPCT_ACCEPTOR_MS 2000    /* and how long each may take */

typedef struct hpct_acceptor hpct_acceptor;

/* Takes `listen_fd` over, which hpct_link_listen made, also when it fails; `auth` must live on.
 * `self` is the rank or index that others want to reach here. */
hpct_status hpct_acceptor_new(hpct_acceptor **out, int listen_fd, const hpct_auth *auth,
                              uint32_t self);
void hpct_acceptor_free(hpct_acceptor *acceptor); /* closes what is open; allows NULL */

/* Readable when hpct_acceptor_next has something to do; which must be called each second besides,
 * to notice who takes too long. */
int hpct_acceptor_fd(const hpct_acceptor *acceptor);

/* Who has proved itself, but does not know yet that it is taken in. */
typedef struct hpct_guest {
    int fd;
    hpct_purpose purpose;
    uint32_t from; /* the rank or index that it is */
    hpct_proof proof;
} hpct_guest;

/* Moves all connections; true with one that has proved itself: call again until it is false. */
bool hpct_acceptor_next(hpct_acceptor *acceptor, hpct_guest *guest);

/* One of the two must follow. Accept says so to the other end and opens the session; false when it
 * has gone, or there is no memory. */
bool hpct_guest_accept(hpct_guest *guest, hpct_session *session);
void hpct_guest_refuse(hpct_guest *guest);

#endif
