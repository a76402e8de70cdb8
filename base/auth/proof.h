/* base/auth/proof.h - mutual authentication of the two ends of a new connection by the step's key,
 * before either trusts a byte of the other: four messages of fixed size.
 *
 *   HELLO   connector: purpose, its id, the listener's id, a nonce, an X25519 public key;
 *           HMAC-SHA256 of these and the run
 *   ANSWER  listener: a nonce, a public key; HMAC of these and the HELLO
 *   LAST    connector: HMAC of HELLO and ANSWER; authenticates the connector
 *   ACCEPT  listener: HMAC of all three; the listener has accepted the connection
 *
 * Each HMAC is keyed by the step's key and begins with its message's name, so that none is valid in
 * another message, connection, purpose, rank, run or direction. Both ends derive two keys for
 * message authentication (base/auth/seal.h) from the key, all messages, and the X25519 secret:
 * learning the step's key later does not allow injecting into a connection that was only observed.
 *
 * The structure is that of SIGMA and of TLS 1.3 with PSK and ECDHE (RFC 8446, 2.2). Independent of
 * sockets. Cryptography: libcrypto. */
#ifndef HPCT_BASE_AUTH_PROOF_H
#define HPCT_BASE_AUTH_PROOF_H

#include "base/auth/key.h"

#define HPCT_AUTH_PROOF_HELLO 112
#define HPCT_AUTH_PROOF_ANSWER 96
#define HPCT_AUTH_PROOF_LAST 32
#define HPCT_AUTH_PROOF_ACCEPT 32
#define HPCT_AUTH_PROOF_RUN 64

/* Purpose of a connection. */
typedef enum hpct_auth_purpose {
    HPCT_AUTH_FOR_WATCH = 1, /* a rank to rank 0 */
    HPCT_AUTH_FOR_PEERS,     /* a rank to a lower one */
    HPCT_AUTH_FOR_EXCHANGE,  /* a rank to rank 0 */
    HPCT_AUTH_FOR_PS_WORKER, /* a worker, to a parameter server */
    HPCT_AUTH_FOR_PS_PULSE,  /* heartbeats of a worker, to parameter server 0 */
    HPCT_AUTH_FOR_PS_LEADER, /* parameter server 0, to another one */
    HPCT_AUTH_FOR_PORTS,     /* a node, to srun (spank/agree/ports_agree.h) */
    HPCT_AUTH_FOR_RESULTS,   /* a node, to srun (spank/agree/results.h) */
    HPCT_AUTH_PURPOSES
} hpct_auth_purpose;

/* Known to both ends in advance. */
typedef struct hpct_auth {
    const hpct_auth_key *key;
    char run[HPCT_AUTH_PROOF_RUN]; /* job and step, "42.0"; NUL-terminated */
} hpct_auth;

/* One end's state of a handshake. */
typedef struct hpct_auth_proof {
    const hpct_auth *auth;
    hpct_auth_purpose purpose;
    uint32_t from, to; /* connector and listener: ranks, or indices of workers and servers */
    uint8_t hello[HPCT_AUTH_PROOF_HELLO], answer[HPCT_AUTH_PROOF_ANSWER];
    uint8_t private_key[32], shared[32];
} hpct_auth_proof;

/* Connector: fills `hello`; HPCT_ERR_INTERNAL without memory or random numbers. Then computes the
 * next message from each answer; returns false if the answer is not authentic. */
hpct_status hpct_auth_proof_begin(hpct_auth_proof *proof, const hpct_auth *auth,
                                  hpct_auth_purpose purpose, uint32_t from, uint32_t to);
bool hpct_auth_proof_answered(hpct_auth_proof *proof, const uint8_t answer[HPCT_AUTH_PROOF_ANSWER],
                              uint8_t last[HPCT_AUTH_PROOF_LAST]);
bool hpct_auth_proof_accepted(const hpct_auth_proof *proof,
                              const uint8_t accept[HPCT_AUTH_PROOF_ACCEPT]);

/* Listener `to`: checks a HELLO, extracts purpose and `from`, and fills `answer`. Returns false if
 * the sender lacks the key, or asks for another run or listener. A HELLO may be replayed: only
 * hpct_auth_proof_believed authenticates the connector. */
bool hpct_auth_proof_hear(hpct_auth_proof *proof, const hpct_auth *auth, uint32_t to,
                          const uint8_t hello[HPCT_AUTH_PROOF_HELLO]);
bool hpct_auth_proof_believed(const hpct_auth_proof *proof,
                              const uint8_t last[HPCT_AUTH_PROOF_LAST]);
bool hpct_auth_proof_accept(const hpct_auth_proof *proof, uint8_t accept[HPCT_AUTH_PROOF_ACCEPT]);

/* Derives the keys for messages to the listener and to the connector, then wipes the proof. Returns
 * false if libcrypto fails, as all functions here. */
bool hpct_auth_proof_finish(hpct_auth_proof *proof, hpct_auth_key *to_listener,
                            hpct_auth_key *to_connector);

#endif
