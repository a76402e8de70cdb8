/* Connections between ranks, and messages over them. */
#include "agent/comm/peers.h"

#include "agent/comm/agree.h"
#include "agent/comm/rendezvous.h"
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/progress.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 5000 /* per address */
/* How long a rank may not be reached: the network is down for a moment, or too many connect to that
 * rank at once, and it closes some. */
#define AWAY_MS 10000
#define TURN_MS 500
#define WATCH_SECONDS 10 /* by then the watch has named the lost rank */

#define WAKE_BYTES (256 << 10) /* limit for SO_RCVLOWAT */

struct hpct_comm_peers {
    int rank, size;
    int *fds;     /* [size], -1: not connected */
    int *wake;    /* [size] current SO_RCVLOWAT */
    int aside_fd; /* -1: none */
    hpct_status (*aside)(void *argument);
    void *aside_argument;
};

/* Addresses of a rank. */
typedef struct card {
    int32_t port; /* 0: it cannot listen */
    hpct_comm_rendezvous_hosts hosts;
} card;

/* ---- opening ---- */

/* State while a rank connects to some ranks and accepts others at the same time. */
typedef struct opening {
    hpct_comm_peers *peers;
    const hpct_auth *auth;
    const bool *wanted;
    hpct_net_acceptor *acceptor;
    int64_t until_ms;
} opening;

static void admit(const opening *o, hpct_net_guest *guest)
{
    hpct_net_session session;
    uint32_t rank = guest->from;
    if (guest->purpose != HPCT_AUTH_FOR_PEERS || rank <= (uint32_t) o->peers->rank ||
        rank >= (uint32_t) o->peers->size || !o->wanted[rank] || o->peers->fds[rank] >= 0)
        hpct_net_guest_refuse(guest);
    else if (hpct_net_guest_accept(guest, &session))
        o->peers->fds[rank] = hpct_net_session_take_fd(&session);
}

/* Waits for data on `fd` (-1: none) or a connection, at most TURN_MS; accepts connections. False
 * after the deadline. */
static bool wait_and_admit(const opening *o, int fd)
{
    hpct_net_guest guest;
    int64_t left = o->until_ms - hpct_now_ms();
    if (left <= 0)
        return false;
    struct pollfd waits[] = {{.fd = hpct_net_acceptor_fd(o->acceptor), .events = POLLIN},
                             {.fd = fd, .events = POLLIN}};
    poll(waits, 2, left < TURN_MS ? (int) left : TURN_MS);
    while (hpct_net_acceptor_next(o->acceptor, &guest))
        admit(o, &guest);
    return true;
}

/* A private address may belong to another host, too: the peer must authenticate. */
static hpct_status greet(const opening *o, int fd, int rank)
{
    hpct_net_connecting connecting;
    hpct_net_session session;
    hpct_net_handshake how = HPCT_NET_HANDSHAKE_WAIT;
    HPCT_TRY(hpct_net_connecting_begin(&connecting, fd, o->auth, HPCT_AUTH_FOR_PEERS,
                                       (uint32_t) o->peers->rank, (uint32_t) rank));
    while ((how = hpct_net_connecting_step(&connecting, &session)) == HPCT_NET_HANDSHAKE_WAIT &&
           wait_and_admit(o, fd))
        ;
    if (how == HPCT_NET_HANDSHAKE_WAIT)
        hpct_net_connecting_give_up(&connecting);
    if (how != HPCT_NET_HANDSHAKE_DONE)
        return hpct_fail(HPCT_ERR_PEER, how == HPCT_NET_HANDSHAKE_FOREIGN ? "another one answers"
                                                                          : "it does not answer");
    o->peers->fds[rank] = hpct_net_session_take_fd(&session);
    return HPCT_OK;
}

/* Tries each address once. */
static hpct_status try_addresses(const opening *o, const card *other, int rank)
{
    hpct_status status = hpct_fail(HPCT_ERR_PEER, "rank %d has no address", rank);
    for (int i = 0; i < other->hosts.num; i++) {
        char address[HPCT_COMM_RENDEZVOUS_ADDRESS_SIZE];
        int fd;
        if (hpct_now_ms() > o->until_ms)
            break;
        snprintf(address, sizeof address, "%s:%d", other->hosts.host[i], other->port);
        status = hpct_net_link_connect(&fd, address, CONNECT_MS);
        if (status != HPCT_OK)
            continue;
        status = greet(o, fd, rank);
        if (status == HPCT_OK)
            return HPCT_OK;
        hpct_fail_within(status, address);
    }
    return status;
}

static hpct_status reach(const opening *o, const card *other, int rank)
{
    int64_t away_until_ms = hpct_now_ms() + AWAY_MS;
    hpct_status status;
    do
        status = try_addresses(o, other, rank);
    while (status != HPCT_OK && hpct_now_ms() < away_until_ms && wait_and_admit(o, -1));
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank %d", rank);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, prefix);
}

static int first_missing(const hpct_comm_peers *peers, const bool *wanted)
{
    int rank = 0;
    while (rank < peers->size && (rank == peers->rank || !wanted[rank] || peers->fds[rank] >= 0))
        rank++;
    return rank;
}

/* A rank connects to lower ranks and accepts higher ones. All are listening already. */
static hpct_status connect_all(const opening *o, const card *cards)
{
    hpct_comm_peers *peers = o->peers;
    hpct_status status = HPCT_OK;
    int missing;
    for (int rank = 0; rank < peers->rank && status == HPCT_OK; rank++) {
        if (o->wanted[rank])
            status = reach(o, &cards[rank], rank);
    }
    while (status == HPCT_OK && (missing = first_missing(peers, o->wanted)) < peers->size) {
        if (!wait_and_admit(o, -1))
            status = hpct_fail(HPCT_ERR_PEER, "rank %d has not connected to rank %d", missing,
                               peers->rank);
    }
    return status;
}

static hpct_status listen_for(const hpct_comm_peers_group *group, card *own,
                              hpct_net_acceptor **acceptor)
{
    int port = 0, fd = -1;
    char host[64];
    snprintf(host, sizeof host, "rank %d", group->rank);
    hpct_status status = hpct_net_link_listen(&fd, &port, host, SOMAXCONN);
    if (status == HPCT_OK)
        status = hpct_net_acceptor_new(acceptor, fd, group->auth, (uint32_t) group->rank);
    hpct_comm_rendezvous_list_hosts(&own->hosts);
    own->port = port;
    return status;
}

static hpct_comm_peers *peers_new(const hpct_comm_peers_group *group)
{
    hpct_comm_peers *peers = calloc(1, sizeof *peers);
    if (peers == NULL)
        return NULL;
    *peers = (hpct_comm_peers){.rank = group->rank,
                               .size = group->size,
                               .fds = calloc(2 * (size_t) group->size, sizeof *peers->fds),
                               .aside_fd = -1};
    if (peers->fds == NULL) {
        free(peers);
        return NULL;
    }
    peers->wake = peers->fds + group->size;
    for (int rank = 0; rank < group->size; rank++)
        peers->fds[rank] = -1;
    return peers;
}

static hpct_status agree(const hpct_comm_peers_group *group, hpct_status status)
{
    return group->comm == NULL ? status
                               : hpct_comm_agree(group->comm, status, "connect to one another");
}

hpct_status hpct_comm_peers_connect(hpct_comm_peers **out, const hpct_comm_peers_group *group,
                                    const bool *wanted, int seconds)
{
    card own = {0};
    hpct_net_acceptor *acceptor = NULL;
    hpct_comm_peers *peers = peers_new(group);
    card *cards = calloc((size_t) group->size, sizeof *cards);
    hpct_status status = HPCT_OK;
    if (peers == NULL || cards == NULL)
        status = hpct_fail_memory((size_t) group->size * sizeof *cards);
    if (status == HPCT_OK)
        status = listen_for(group, &own, &acceptor);
    status = agree(group, status);
    if (status == HPCT_OK)
        status = group->deal(group->argument, &own, cards, sizeof own);
    if (status == HPCT_OK) {
        hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
        const opening o = {.peers = peers,
                           .auth = group->auth,
                           .wanted = wanted,
                           .acceptor = acceptor,
                           .until_ms = hpct_now_ms() + 1000 * (int64_t) seconds};
        status = agree(group, connect_all(&o, cards));
        hpct_enter_wait(before);
    }
    hpct_net_acceptor_free(acceptor);
    free(cards);
    if (status == HPCT_OK)
        *out = peers;
    else
        hpct_comm_peers_close(peers);
    return status;
}

void hpct_comm_peers_set_aside(hpct_comm_peers *peers, int fd, hpct_status (*move)(void *argument),
                               void *argument)
{
    peers->aside_fd = fd;
    peers->aside = move;
    peers->aside_argument = argument;
}

/* The step's key, or a new one for these connections; the caller frees *drawn. */
static hpct_status find_auth(hpct_comm *comm, hpct_auth *auth, hpct_auth_key **drawn)
{
    *drawn = NULL;
    if (comm->auth != NULL) {
        *auth = *comm->auth;
        return HPCT_OK;
    }
    hpct_status status = hpct_comm_rendezvous_draw_key(drawn, comm);
    *auth = (hpct_auth){.key = *drawn};
    return status;
}

static hpct_status deal_over_comm(void *argument, const void *mine, void *all, size_t bytes)
{
    hpct_comm *comm = argument;
    return comm->ops->allgather(comm, mine, all, bytes);
}

hpct_status hpct_comm_peers_open(hpct_comm_peers **out, hpct_comm *comm, const bool *wanted,
                                 int seconds)
{
    hpct_auth auth;
    hpct_auth_key *drawn;
    hpct_status status = find_auth(comm, &auth, &drawn);
    if (status == HPCT_OK)
        status = hpct_comm_peers_connect(out,
                                         &(hpct_comm_peers_group){.rank = comm->rank,
                                                                  .size = comm->size,
                                                                  .auth = &auth,
                                                                  .deal = deal_over_comm,
                                                                  .argument = comm,
                                                                  .comm = comm},
                                         wanted, seconds);
    hpct_auth_key_free(drawn);
    return status;
}

void hpct_comm_peers_close(hpct_comm_peers *peers)
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

int hpct_comm_peers_fd(const hpct_comm_peers *peers, int rank)
{
    return peers->fds[rank];
}

hpct_status hpct_comm_peers_lost(int rank, const char *how)
{
    sleep(WATCH_SECONDS); /* the watch knows which rank was lost first, and ends this process */
    return hpct_fail(HPCT_ERR_PEER, "the connection to rank %d broke: %s", rank, how);
}

static size_t bytes_of(const struct iovec *pieces)
{
    size_t bytes = 0;
    for (int i = 0; i < HPCT_COMM_PEERS_PIECES; i++)
        bytes += pieces[i].iov_len;
    return bytes;
}

static void skip(struct iovec *pieces, size_t bytes)
{
    for (int i = 0; i < HPCT_COMM_PEERS_PIECES; i++) {
        size_t part = bytes < pieces[i].iov_len ? bytes : pieces[i].iov_len;
        pieces[i].iov_base = (char *) pieces[i].iov_base + part;
        pieces[i].iov_len -= part;
        bytes -= part;
    }
}

/* Sends or receives as much as possible now; *moved: any bytes. */
static hpct_status move(const hpct_comm_peers *peers, hpct_comm_peers_message *m, bool out,
                        bool *moved)
{
    struct msghdr header = {.msg_iov = m->pieces, .msg_iovlen = HPCT_COMM_PEERS_PIECES};
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
        return hpct_comm_peers_lost(m->rank, "the other end closed it");
    return errno == EAGAIN || errno == EINTR ? HPCT_OK
                                             : hpct_comm_peers_lost(m->rank, strerror(errno));
}

/* Wakes the receiver by the size of the message, not by each segment. */
static void set_wake(hpct_comm_peers *peers, int rank, size_t bytes)
{
    int wake = bytes < WAKE_BYTES ? (int) bytes : WAKE_BYTES;
    if (peers->wake[rank] == wake)
        return;
    peers->wake[rank] = wake;
    setsockopt(peers->fds[rank], SOL_SOCKET, SO_RCVLOWAT, &wake, sizeof wake);
}

hpct_status hpct_comm_peers_exchange(hpct_comm_peers *peers, const hpct_comm_peers_message *out,
                                     const hpct_comm_peers_message *in)
{
    hpct_comm_peers_message send = *out, receive = *in;
    size_t to_send = bytes_of(send.pieces), to_receive = bytes_of(receive.pieces);
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = HPCT_OK;
    while (status == HPCT_OK && to_send + to_receive > 0) {
        hpct_count_progress();
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
            {.fd = to_receive > 0 ? peers->fds[receive.rank] : -1, .events = POLLIN},
            {.fd = peers->aside_fd, .events = POLLIN}};
        if (poll(waits, 3, -1) > 0 && waits[2].revents != 0)
            status = peers->aside(peers->aside_argument);
    }
    hpct_enter_wait(before);
    return status;
}
