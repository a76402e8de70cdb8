/* base/auth/proof.h - how the two ends of a new connection prove to each other that they have the
 * step's key, before either believes a byte of the other: four messages of fixed sizes.
 *
 *   HELLO   connector: what for, who it is, whom it wants, a random number, an X25519 public key;
 *           HMAC-SHA256 of these and the run
 *   ANSWER  listener: a random number, a public key; HMAC of these and the HELLO
 *   LAST    connector: HMAC of HELLO and ANSWER; only now is it believed
 *   ACCEPT  listener: HMAC of all three; it has been taken in, and is not one too many
 *
 * Each HMAC is keyed by the step's key and begins with its message's name, so that none serves in
 * another's place, for another connection, purpose, rank or run, or in the other direction. Both
 * ends then have two seal keys (base/auth/seal.h) made from the key, all messages, and the secret
 * that the public keys agree on: who learns the step's key later cannot put messages into a
 * connection that he only watched.
 *
 * The shape is that of SIGMA and TLS 1.3's handshake with a shared key and ECDHE (RFC 8446, 2.2).
 * Knows nothing of sockets. Cryptography: libcrypto. */
#ifndef HPCT_AUTH_PROOF_H
#define HPCT_AUTH_PROOF_H

#include "base/auth/key.h"

#define HPCT_PROOF_HELLO 112
#define HPCT_PROOF_ANSWER 96
#define HPCT_PROOF_LAST 32
#define HPCT_PROOF_ACCEPT 32
#define HPCT_PROOF_RUN 64

/* What a connection is for. */
typedef enum hpct_purpose {
    HPCT_FOR_WATCH = 1, /* a rank to rank 0 */
    HPCT_FOR_PEERS,     /* a rank to a lower one */
    HPCT_FOR_EXCHANGE,  /* a rank to rank 0 */
    HPCT_FOR_PS_WORKER, /* a worker, to a parameter server */
    HPCT_FOR_PS_PULSE,  /* a worker's signs of life, to parameter server 0 */
    HPCT_FOR_PS_LEADER, /* parameter server 0, to another one */
    HPCT_FOR_PORTS,     /* a node, to srun (spank/ports_agree.h) */
    HPCT_FOR_RESULTS,   /* a node, to srun (spank/results.h) */
    HPCT_PURPOSES
} hpct_purpose;

/* What both ends know beforehand. */
typedef struct hpct_auth {
    const hpct_key *key;
    char run[HPCT_PROOF_RUN]; /* job and step, "42.0"; NUL-terminated */
} hpct_auth;

/* One end's view of a handshake under way. */
typedef struct hpct_proof {
    const hpct_auth *auth;
    hpct_purpose purpose;
    uint32_t from, to; /* connector and listener: ranks, or indices of workers and servers */
    uint8_t hello[HPCT_PROOF_HELLO], answer[HPCT_PROOF_ANSWER];
    uint8_t private_key[32], shared[32];
} hpct_proof;

/* The connector: fills `hello`; HPCT_ERR_INTERNAL when there is no memory or no random number.
 * Then, from each answer, what to say next; false when it proves nothing. */
hpct_status hpct_proof_begin(hpct_proof *proof, const hpct_auth *auth, hpct_purpose purpose,
                             uint32_t from, uint32_t to);
bool hpct_proof_answered(hpct_proof *proof, const uint8_t answer[HPCT_PROOF_ANSWER],
                         uint8_t last[HPCT_PROOF_LAST]);
bool hpct_proof_accepted(const hpct_proof *proof, const uint8_t accept[HPCT_PROOF_ACCEPT]);

/* The listener `to`: takes a HELLO, whose purpose and `from` it then has, and fills `answer`. False
 * when who sent it does not have the key, or wants another run or listener. A HELLO may have been
 * sent before by somebody else: only hpct_proof_believed tells. */
bool hpct_proof_hear(hpct_proof *proof, const hpct_auth *auth, uint32_t to,
                     const uint8_t hello[HPCT_PROOF_HELLO]);
bool hpct_proof_believed(const hpct_proof *proof, const uint8_t last[HPCT_PROOF_LAST]);
bool hpct_proof_accept(const hpct_proof *proof, uint8_t accept[HPCT_PROOF_ACCEPT]);

/* Keys of the seals of what goes to the listener and to the connector; then wipes the proof. False
 * when libcrypto fails, as everywhere here. */
bool hpct_proof_finish(hpct_proof *proof, hpct_key *to_listener, hpct_key *to_connector);

#endif
