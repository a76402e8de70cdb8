/* base/net/session.h - a mutually authenticated TCP connection (base/auth/proof.h), and how the
 * connecting end opens one. Listening end: base/net/acceptor.h. */
#ifndef HPCT_BASE_NET_SESSION_H
#define HPCT_BASE_NET_SESSION_H

#include "base/auth/proof.h"
#include "base/auth/seal.h"

typedef struct hpct_net_session {
    int fd;                   /* non-blocking; -1: none */
    hpct_auth_seal *in, *out; /* for both directions; NULL if only `fd` was asked for */
} hpct_net_session;

/* Takes ownership of `fd` unless it returns false (no memory). Wipes the proof, which knows the
 * role of this end. */
bool hpct_net_session_open(hpct_net_session *session, int fd, hpct_auth_proof *proof,
                           bool connector);
void hpct_net_session_close(hpct_net_session *session);

/* Returns the socket and frees the rest; for bulk data, which is not authenticated. */
int hpct_net_session_take_fd(hpct_net_session *session);

typedef enum hpct_net_handshake {
    HPCT_NET_HANDSHAKE_WAIT,    /* waits for the peer */
    HPCT_NET_HANDSHAKE_DONE,    /* the session is open */
    HPCT_NET_HANDSHAKE_FOREIGN, /* the listener lacks the key, or closed before proving it */
    HPCT_NET_HANDSHAKE_LEFT,    /* authenticated, then closed without accepting */
} hpct_net_handshake;

/* State of the connector. */
typedef struct hpct_net_connecting {
    int fd;
    bool answered;
    size_t filled;
    hpct_auth_proof proof;
    uint8_t in[HPCT_AUTH_PROOF_ANSWER];
} hpct_net_connecting;

/* Takes ownership of `fd` from hpct_net_link_connect; closed unless the session opens. */
hpct_status hpct_net_connecting_begin(hpct_net_connecting *connecting, int fd,
                                      const hpct_auth *auth, hpct_auth_purpose purpose,
                                      uint32_t from, uint32_t to);

/* Processes what has arrived. DONE fills *session. */
hpct_net_handshake hpct_net_connecting_step(hpct_net_connecting *connecting,
                                            hpct_net_session *session);
void hpct_net_connecting_give_up(hpct_net_connecting *connecting);

/* Runs the handshake to its end. A peer that sends nothing for answer_ms is given up (WAIT); an
 * authenticated one is waited for until `until_ms` (then LEFT), as it may count this end as
 * connected. */
hpct_net_handshake hpct_net_connecting_wait(hpct_net_connecting *connecting, int answer_ms,
                                            int64_t until_ms, hpct_net_session *session);

#endif
