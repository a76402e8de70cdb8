/* A star around rank 0, which receives a record from each rank and sends all of them to each. */
#include "agent/comm/exchange.h"

#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_MS 5000 /* timeout for a connected rank to send its record */
#define CONNECT_MS 2000
#define ANSWER_MS 5000
#define TURN_MS 500
#define RETRY_MICROSECONDS 20000

typedef struct exchange {
    const hpct_comm_meeting *meeting;
    const hpct_cluster_config *config;
    char *all;
    size_t bytes;
    int64_t until_ms;
} exchange;

static hpct_status missing(const exchange *x, int rank)
{
    return hpct_fail(HPCT_ERR_PEER,
                     "rank %d at %s did not come within %d s to agree on how to connect", rank,
                     x->config->addresses[rank], x->meeting->seconds);
}

/* ---- rank 0 ---- */

/* Sends or receives sealed data: one record, or all of them. */
static bool pass(hpct_net_session *session, char *data, size_t bytes, bool out, int64_t until_ms)
{
    uint8_t tag[HPCT_AUTH_SEAL_TAG];
    hpct_auth_seal *seal = out ? session->out : session->in;
    if (out) {
        hpct_auth_seal_add(seal, data, bytes);
        hpct_auth_seal_end(seal, tag);
    }
    if (!hpct_net_link_pass(session->fd, data, bytes, out, until_ms) ||
        !hpct_net_link_pass(session->fd, tag, sizeof tag, out, until_ms))
        return false;
    if (out)
        return true;
    hpct_auth_seal_add(seal, data, bytes);
    return hpct_auth_seal_check(seal, tag);
}

static void admit(const exchange *x, hpct_net_session *sessions, hpct_net_guest *guest)
{
    uint32_t rank = guest->from;
    if (guest->purpose != HPCT_AUTH_FOR_EXCHANGE || rank == 0 ||
        rank >= (uint32_t) x->config->size || sessions[rank].fd >= 0) {
        hpct_net_guest_refuse(guest);
        return;
    }
    if (hpct_net_guest_accept(guest, &sessions[rank]) &&
        !pass(&sessions[rank], x->all + (size_t) rank * x->bytes, x->bytes, false,
              hpct_now_ms() + RECORD_MS))
        hpct_net_session_close(&sessions[rank]);
}

static int first_missing(const exchange *x, const hpct_net_session *sessions)
{
    int rank = 1;
    while (rank < x->config->size && sessions[rank].fd >= 0)
        rank++;
    return rank;
}

static hpct_status collect(const exchange *x, hpct_net_session *sessions,
                           hpct_net_acceptor *acceptor)
{
    int rank;
    while ((rank = first_missing(x, sessions)) < x->config->size) {
        hpct_net_guest guest;
        int64_t left = x->until_ms - hpct_now_ms();
        if (left <= 0)
            return missing(x, rank);
        struct pollfd waits = {.fd = hpct_net_acceptor_fd(acceptor), .events = POLLIN};
        poll(&waits, 1, left < TURN_MS ? (int) left : TURN_MS);
        while (hpct_net_acceptor_next(acceptor, &guest))
            admit(x, sessions, &guest);
    }
    return HPCT_OK;
}

static hpct_status serve(const exchange *x)
{
    size_t size = (size_t) x->config->size;
    hpct_net_acceptor *acceptor = NULL;
    hpct_net_session *sessions = calloc(size, sizeof *sessions);
    if (sessions == NULL)
        return hpct_fail_memory(size * sizeof *sessions);
    for (size_t rank = 0; rank < size; rank++)
        sessions[rank].fd = -1;
    int fd = fcntl(x->meeting->listen_fd, F_DUPFD_CLOEXEC, 0); /* owned by the acceptor */
    hpct_status status = fd >= 0 ? hpct_net_acceptor_new(&acceptor, fd, x->meeting->auth, 0)
                                 : hpct_fail(HPCT_ERR_INTERNAL, "fcntl: %s", strerror(errno));
    if (status == HPCT_OK)
        status = collect(x, sessions, acceptor);
    for (int rank = 1; rank < x->config->size && status == HPCT_OK; rank++) {
        if (!pass(&sessions[rank], x->all, size * x->bytes, true, x->until_ms))
            status = missing(x, rank);
    }
    for (size_t rank = 0; rank < size; rank++)
        hpct_net_session_close(&sessions[rank]);
    hpct_net_acceptor_free(acceptor);
    free(sessions);
    return status;
}

/* ---- other ranks ---- */

static bool ask(exchange *x, int fd)
{
    size_t size = (size_t) x->config->size;
    hpct_net_connecting connecting;
    hpct_net_session session;
    if (hpct_net_connecting_begin(&connecting, fd, x->meeting->auth, HPCT_AUTH_FOR_EXCHANGE,
                                  (uint32_t) x->config->rank, 0) != HPCT_OK ||
        hpct_net_connecting_wait(&connecting, ANSWER_MS, x->until_ms, &session) !=
            HPCT_NET_HANDSHAKE_DONE)
        return false;
    bool told =
        pass(&session, x->all + (size_t) x->config->rank * x->bytes, x->bytes, true, x->until_ms) &&
        pass(&session, x->all, size * x->bytes, false, x->until_ms);
    hpct_net_session_close(&session);
    return told;
}

/* Retries, as rank 0 may not be listening yet. */
static hpct_status reach(exchange *x)
{
    do {
        int fd = -1;
        hpct_status status = hpct_net_link_connect(&fd, x->config->addresses[0], CONNECT_MS);
        if (status == HPCT_ERR_CONFIG)
            return status;
        if (status == HPCT_OK && ask(x, fd))
            return HPCT_OK;
        usleep(RETRY_MICROSECONDS);
    } while (hpct_now_ms() < x->until_ms);
    return missing(x, 0);
}

hpct_status hpct_comm_exchange(const hpct_comm_meeting *meeting, const void *mine, void *all,
                               size_t bytes)
{
    const hpct_cluster_config *config = meeting->config;
    exchange x = {.meeting = meeting,
                  .config = config,
                  .all = all,
                  .bytes = bytes,
                  .until_ms = hpct_now_ms() + 1000 * (int64_t) meeting->seconds};
    memcpy(x.all + (size_t) config->rank * bytes, mine, bytes);
    return config->rank == 0 ? serve(&x) : reach(&x);
}
