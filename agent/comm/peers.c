/* Connections between ranks, and messages over them. */
#include "agent/comm/peers.h"

#include "agent/comm/agree.h"
#include "agent/comm/link.h"
#include "agent/comm/rendezvous.h"
#include "base/headway.h"
#include "base/status.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128
#define CONNECT_MS 5000  /* for one address */
#define HELLO_MS 2000    /* for a stranger to say who he is */
#define WATCH_SECONDS 10 /* until the watch has surely said who was lost */

#define WAKE_BYTES (256 << 10) /* most that is waited for before a sleeper is woken */

struct hpct_peers {
    int rank, size;
    int *fds;  /* [size], -1: not connected */
    int *wake; /* [size] bytes that wake who waits for a message (SO_RCVLOWAT) */
};

/* Where a rank can be reached. */
typedef struct card {
    int32_t port; /* 0: it cannot */
    hpct_rendezvous_hosts hosts;
} card;

/* What is said first on a connection. */
typedef struct hello {
    uint8_t token[HPCT_TOKEN_BYTES];
    int32_t rank;
} hello;

/* ---- opening ---- */

/* The same private address may be another host's, too: the rank there must say who it is. */
static bool greet(int fd, hello *own, int rank, int64_t until_ms)
{
    hello other;
    return hpct_link_pass(fd, own, sizeof *own, true, until_ms) &&
           hpct_link_pass(fd, &other, sizeof other, false, until_ms) && other.rank == rank &&
           memcmp(other.token, own->token, sizeof other.token) == 0;
}

static hpct_status reach(hpct_peers *peers, const card *other, int rank, hello *own,
                         int64_t until_ms)
{
    hpct_status status = hpct_fail(HPCT_ERR_PEER, "rank %d has no address", rank);
    for (int i = 0; i < other->hosts.num; i++) {
        char address[HPCT_RENDEZVOUS_ADDRESS_SIZE];
        int fd;
        if (hpct_link_now_ms() > until_ms)
            break;
        snprintf(address, sizeof address, "%s:%d", other->hosts.host[i], other->port);
        status = hpct_link_connect(&fd, address, CONNECT_MS);
        if (status != HPCT_OK)
            continue;
        if (greet(fd, own, rank, until_ms)) {
            peers->fds[rank] = fd;
            return HPCT_OK;
        }
        status = hpct_fail(HPCT_ERR_PEER, "another one answers at %s", address);
        close(fd);
    }
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank %d", rank);
    return hpct_fail_within(status, prefix);
}

/* Whoever knows the token is the rank that he says. */
static void admit(hpct_peers *peers, const bool *wanted, int fd, hello *own)
{
    hello other;
    int64_t until_ms = hpct_link_now_ms() + HELLO_MS;
    bool welcome = hpct_link_pass(fd, &other, sizeof other, false, until_ms) &&
                   memcmp(other.token, own->token, sizeof other.token) == 0 &&
                   other.rank > peers->rank && other.rank < peers->size && wanted[other.rank] &&
                   peers->fds[other.rank] < 0 &&
                   hpct_link_pass(fd, own, sizeof *own, true, until_ms);
    if (welcome)
        peers->fds[other.rank] = fd;
    else
        close(fd);
}

static int first_missing(const hpct_peers *peers, const bool *wanted)
{
    int rank = 0;
    while (rank < peers->size && (rank == peers->rank || !wanted[rank] || peers->fds[rank] >= 0))
        rank++;
    return rank;
}

static hpct_status await(hpct_peers *peers, const bool *wanted, int listen_fd, hello *own,
                         int64_t until_ms)
{
    int missing;
    while ((missing = first_missing(peers, wanted)) < peers->size) {
        int64_t left = until_ms - hpct_link_now_ms();
        if (left <= 0)
            return hpct_fail(HPCT_ERR_PEER, "rank %d has not connected to rank %d", missing,
                             peers->rank);
        struct pollfd waits = {.fd = listen_fd, .events = POLLIN};
        int fd =
            poll(&waits, 1, (int) left) > 0 ? accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            admit(peers, wanted, fd, own);
    }
    return HPCT_OK;
}

/* A rank connects to those before it. All listen already, so none waits for another's accept. */
static hpct_status connect_all(hpct_peers *peers, const bool *wanted, const card *cards,
                               int listen_fd, hello *own, int seconds)
{
    int64_t until_ms = hpct_link_now_ms() + 1000 * (int64_t) seconds;
    hpct_status status = HPCT_OK;
    for (int rank = 0; rank < peers->rank && status == HPCT_OK; rank++) {
        if (wanted[rank])
            status = reach(peers, &cards[rank], rank, own, until_ms);
    }
    if (status == HPCT_OK)
        status = await(peers, wanted, listen_fd, own, until_ms);
    for (int rank = 0; rank < peers->size; rank++) {
        int one = 1;
        if (peers->fds[rank] >= 0)
            setsockopt(peers->fds[rank], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return status;
}

static hpct_status make_card(const hpct_comm *comm, card *own, hello *greeting, int *listen_fd)
{
    int port = 0;
    char host[64];
    snprintf(host, sizeof host, "rank %d", comm->rank);
    hpct_status status = hpct_link_listen(listen_fd, &port, host, BACKLOG);
    hpct_rendezvous_list_hosts(&own->hosts);
    own->port = port;
    greeting->rank = comm->rank;
    if (status == HPCT_OK && comm->rank == 0 &&
        getrandom(greeting->token, sizeof greeting->token, 0) != sizeof greeting->token)
        status = hpct_fail(HPCT_ERR_INTERNAL, "getrandom: %s", strerror(errno));
    return status;
}

hpct_status hpct_peers_open(hpct_peers **out, hpct_comm *comm, const bool *wanted, int seconds)
{
    int listen_fd = -1;
    card own = {0};
    hello greeting = {.rank = comm->rank};
    hpct_peers *peers = calloc(1, sizeof *peers);
    card *cards = calloc((size_t) comm->size, sizeof *cards);
    int *fds = calloc(2 * (size_t) comm->size, sizeof *fds);
    for (int rank = 0; fds != NULL && rank < comm->size; rank++)
        fds[rank] = -1;
    hpct_status status = peers == NULL || cards == NULL || fds == NULL
                             ? hpct_fail_memory((size_t) comm->size * sizeof *cards)
                             : make_card(comm, &own, &greeting, &listen_fd);
    status = hpct_comm_agree(comm, status, "connect to one another");
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &own, cards, sizeof own);
    if (status == HPCT_OK)
        status = comm->ops->broadcast(comm, greeting.token, sizeof greeting.token, 0);
    if (status == HPCT_OK) {
        *peers = (hpct_peers){
            .rank = comm->rank, .size = comm->size, .fds = fds, .wake = fds + comm->size};
        hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_RANKS);
        status =
            hpct_comm_agree(comm, connect_all(peers, wanted, cards, listen_fd, &greeting, seconds),
                            "connect to one another");
        hpct_headway_enter(before);
    }
    if (listen_fd >= 0)
        close(listen_fd);
    free(cards);
    if (status == HPCT_OK) {
        *out = peers;
        return HPCT_OK;
    }
    if (peers != NULL && peers->fds == NULL)
        free(fds);
    hpct_peers_close(peers);
    if (peers == NULL)
        free(fds);
    return status;
}

void hpct_peers_close(hpct_peers *peers)
{
    if (peers == NULL)
        return;
    for (int rank = 0; peers->fds != NULL && rank < peers->size; rank++) {
        if (peers->fds[rank] >= 0)
            close(peers->fds[rank]);
    }
    free(peers->fds);
    free(peers);
}

/* ---- messages ---- */

int hpct_peers_fd(const hpct_peers *peers, int rank)
{
    return peers->fds[rank];
}

hpct_status hpct_peers_lost(int rank, const char *how)
{
    sleep(WATCH_SECONDS); /* the watch knows better who was first, and ends this process */
    return hpct_fail(HPCT_ERR_PEER, "the connection to rank %d broke: %s", rank, how);
}

static size_t bytes_of(const struct iovec *pieces)
{
    size_t bytes = 0;
    for (int i = 0; i < HPCT_PEERS_PIECES; i++)
        bytes += pieces[i].iov_len;
    return bytes;
}

static void skip(struct iovec *pieces, size_t bytes)
{
    for (int i = 0; i < HPCT_PEERS_PIECES; i++) {
        size_t part = bytes < pieces[i].iov_len ? bytes : pieces[i].iov_len;
        pieces[i].iov_base = (char *) pieces[i].iov_base + part;
        pieces[i].iov_len -= part;
        bytes -= part;
    }
}

/* As much as goes now; *moved tells whether any did. */
static hpct_status move(const hpct_peers *peers, hpct_peers_message *m, bool out, bool *moved)
{
    struct msghdr header = {.msg_iov = m->pieces, .msg_iovlen = HPCT_PEERS_PIECES};
    if (bytes_of(m->pieces) == 0)
        return HPCT_OK;
    ssize_t bytes = out ? sendmsg(peers->fds[m->rank], &header, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recvmsg(peers->fds[m->rank], &header, MSG_DONTWAIT);
    if (bytes > 0) {
        skip(m->pieces, (size_t) bytes);
        *moved = true;
        return HPCT_OK;
    }
    if (bytes == 0)
        return hpct_peers_lost(m->rank, "the other end closed it");
    return errno == EAGAIN || errno == EINTR ? HPCT_OK : hpct_peers_lost(m->rank, strerror(errno));
}

/* A sleeper is woken by what there is to receive, not by each segment of it. */
static void set_wake(hpct_peers *peers, int rank, size_t bytes)
{
    int wake = bytes < WAKE_BYTES ? (int) bytes : WAKE_BYTES;
    if (peers->wake[rank] == wake)
        return;
    peers->wake[rank] = wake;
    setsockopt(peers->fds[rank], SOL_SOCKET, SO_RCVLOWAT, &wake, sizeof wake);
}

hpct_status hpct_peers_exchange(hpct_peers *peers, const hpct_peers_message *out,
                                const hpct_peers_message *in)
{
    hpct_peers_message send = *out, receive = *in;
    size_t to_send = bytes_of(send.pieces), to_receive = bytes_of(receive.pieces);
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_FOR_RANKS);
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && to_send + to_receive > 0) {
        hpct_headway();
        bool moved = false;
        status = move(peers, &send, true, &moved);
        if (status == HPCT_OK)
            status = move(peers, &receive, false, &moved);
        to_send = bytes_of(send.pieces);
        to_receive = bytes_of(receive.pieces);
        if (status != HPCT_OK || moved || to_send + to_receive == 0)
            continue;
        if (to_receive > 0)
            set_wake(peers, receive.rank, to_receive);
        struct pollfd waits[] = {
            {.fd = to_send > 0 ? peers->fds[send.rank] : -1, .events = POLLOUT},
            {.fd = to_receive > 0 ? peers->fds[receive.rank] : -1, .events = POLLIN}};
        poll(waits, 2, -1);
    }
    hpct_headway_enter(before);
    return status;
}
