/* agent/comm/session.h - a TCP connection whose two ends have proved to each other that they have
 * the step's key, and of which task each is (base/auth/proof.h); and how one comes to be at the end
 * that connects. The end that listens: agent/comm/acceptor.h. */
#ifndef HPCT_COMM_SESSION_H
#define HPCT_COMM_SESSION_H

#include "base/auth/proof.h"
#include "base/auth/seal.h"

typedef struct hpct_session {
    int fd;              /* non-blocking; -1: none */
    hpct_seal *in, *out; /* of what comes and goes; NULL where `fd` alone was asked for */
} hpct_session;

/* `fd` is taken over, unless it is false: no memory. Wipes the proof, of which `connector` says
 * which end has it. */
bool hpct_session_open(hpct_session *session, int fd, hpct_proof *proof, bool connector);
void hpct_session_close(hpct_session *session);

/* Leaves the socket, which it returns; for bulk data, which is not sealed. */
int hpct_session_take_fd(hpct_session *session);

typedef enum hpct_handshake {
    HPCT_HANDSHAKE_WAIT,    /* for the other end */
    HPCT_HANDSHAKE_DONE,    /* the session is open */
    HPCT_HANDSHAKE_FOREIGN, /* whoever listens there has not the key, or closed before he showed it
                             */
    HPCT_HANDSHAKE_LEFT,    /* it proved itself, then closed without taking this end in */
} hpct_handshake;

/* The connector's side, under way. */
typedef struct hpct_connecting {
    int fd;
    bool answered;
    size_t filled;
    hpct_proof proof;
    uint8_t in[HPCT_PROOF_ANSWER];
} hpct_connecting;

/* `fd`, from hpct_link_connect, is taken over; closed unless the session opens. */
hpct_status hpct_connecting_begin(hpct_connecting *connecting, int fd, const hpct_auth *auth,
                                  hpct_purpose purpose, uint32_t from, uint32_t to);

/* What has come is taken, and answered. DONE fills *session. */
hpct_handshake hpct_connecting_step(hpct_connecting *connecting, hpct_session *session);
void hpct_connecting_give_up(hpct_connecting *connecting);

/* Steps until it is through. An end that says nothing for answer_ms is given up, with WAIT; one
 * that has proved itself is waited for until `until_ms` (LEFT then), as it may count this end as
 * there. */
hpct_handshake hpct_connecting_wait(hpct_connecting *connecting, int answer_ms, int64_t until_ms,
                                    hpct_session *session);

#endif
