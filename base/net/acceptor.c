/* Handshakes of a listener, all concurrently: the listening socket and pending connections share
 * one epoll, so their number does not matter to the caller. */
#include "base/net/acceptor.h"

#include "base/net/link.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS 1024 /* accepted per call, so that pending connections progress, too */

typedef struct pending {
    int fd; /* -1: unused */
    int64_t since_ms;
    bool heard; /* its HELLO was made with the key, by the peer or by a replay */
    size_t filled;
    hpct_auth_proof proof;
    uint8_t in[HPCT_AUTH_PROOF_HELLO];
} pending;

struct hpct_net_acceptor {
    int listen_fd, epoll;
    const hpct_auth *auth;
    uint32_t self;
    pending all[HPCT_NET_ACCEPTOR_PENDING];
};

static bool watch_for(const hpct_net_acceptor *a, int fd, pending *who)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = who}};
    return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

hpct_status hpct_net_acceptor_new(hpct_net_acceptor **out, int listen_fd, const hpct_auth *auth,
                                  uint32_t self)
{
    hpct_net_acceptor *a = calloc(1, sizeof *a);
    if (a == NULL) {
        close(listen_fd);
        return hpct_fail_memory(sizeof *a);
    }
    a->listen_fd = listen_fd;
    a->auth = auth;
    a->self = self;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < HPCT_NET_ACCEPTOR_PENDING; i++)
        a->all[i].fd = -1;
    if (a->epoll < 0 || !watch_for(a, listen_fd, NULL)) {
        hpct_status status = hpct_fail(HPCT_ERR_INTERNAL, "epoll: %s", strerror(errno));
        hpct_net_acceptor_free(a);
        return status;
    }
    *out = a;
    return HPCT_OK;
}

static void drop(pending *p)
{
    close(p->fd);
    p->fd = -1;
    explicit_bzero(&p->proof, sizeof p->proof);
}

void hpct_net_acceptor_free(hpct_net_acceptor *acceptor)
{
    if (acceptor == NULL)
        return;
    for (int i = 0; i < HPCT_NET_ACCEPTOR_PENDING; i++) {
        if (acceptor->all[i].fd >= 0)
            drop(&acceptor->all[i]);
    }
    close(acceptor->listen_fd);
    if (acceptor->epoll >= 0)
        close(acceptor->epoll);
    free(acceptor);
}

int hpct_net_acceptor_fd(const hpct_net_acceptor *acceptor)
{
    return acceptor->epoll;
}

/* A free slot, or that of the connection to drop first: without authenticated HELLO, and oldest. */
static pending *find_place(hpct_net_acceptor *a)
{
    pending *worst = &a->all[0];
    for (int i = 0; i < HPCT_NET_ACCEPTOR_PENDING; i++) {
        pending *p = &a->all[i];
        if (p->fd < 0)
            return p;
        if (p->heard != worst->heard ? worst->heard : p->since_ms < worst->since_ms)
            worst = p;
    }
    drop(worst);
    return worst;
}

/* Whether the peer sent something not of this run, or closed. */
static bool is_of_no_use(hpct_net_acceptor *a, pending *p, bool *through)
{
    size_t wanted = p->heard ? HPCT_AUTH_PROOF_LAST : HPCT_AUTH_PROOF_HELLO;
    ssize_t got = recv(p->fd, p->in + p->filled, wanted - p->filled, MSG_DONTWAIT);
    *through = false;
    if (got < 0)
        return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    if (got == 0)
        return true;
    p->filled += (size_t) got;
    if (p->filled < wanted)
        return false;
    p->filled = 0;
    if (p->heard) {
        *through = hpct_auth_proof_believed(&p->proof, p->in);
        return !*through;
    }
    p->heard = true;
    return !hpct_auth_proof_hear(&p->proof, a->auth, a->self, p->in) ||
           send(p->fd, p->proof.answer, HPCT_AUTH_PROOF_ANSWER, MSG_NOSIGNAL | MSG_DONTWAIT) !=
               HPCT_AUTH_PROOF_ANSWER;
}

/* Progresses one connection; true when it is authenticated. */
static bool move_on(hpct_net_acceptor *a, pending *p, hpct_net_guest *guest)
{
    bool through;
    if (is_of_no_use(a, p, &through))
        drop(p);
    if (!through)
        return false;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    *guest = (hpct_net_guest){
        .fd = p->fd, .purpose = p->proof.purpose, .from = p->proof.from, .proof = p->proof};
    explicit_bzero(&p->proof, sizeof p->proof);
    p->fd = -1;
    return true;
}

/* Accepts connections. The HELLO of a task of this run often arrives with its connection and
 * protects its slot. */
static void take_connections(hpct_net_acceptor *a, int64_t now)
{
    for (int i = 0; i < ACCEPTS; i++) {
        hpct_net_guest none;
        int fd = accept4(a->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        pending *p = find_place(a);
        *p = (pending){.fd = fd, .since_ms = now};
        if (!watch_for(a, fd, p))
            drop(p);
        else
            move_on(a, p, &none); /* LAST cannot have arrived: ANSWER was not sent */
    }
}

bool hpct_net_acceptor_next(hpct_net_acceptor *acceptor, hpct_net_guest *guest)
{
    int64_t now = hpct_now_ms();
    take_connections(acceptor, now);
    for (int i = 0; i < HPCT_NET_ACCEPTOR_PENDING; i++) {
        pending *p = &acceptor->all[i];
        if (p->fd >= 0 && move_on(acceptor, p, guest))
            return true;
        if (p->fd >= 0 && now - p->since_ms > HPCT_NET_ACCEPTOR_MS)
            drop(p);
    }
    return false;
}

void hpct_net_guest_refuse(hpct_net_guest *guest)
{
    close(guest->fd);
    explicit_bzero(guest, sizeof *guest);
    guest->fd = -1;
}

bool hpct_net_guest_accept(hpct_net_guest *guest, hpct_net_session *session)
{
    uint8_t accept[HPCT_AUTH_PROOF_ACCEPT];
    *session = (hpct_net_session){.fd = -1};
    bool done = hpct_auth_proof_accept(&guest->proof, accept) &&
                send(guest->fd, accept, sizeof accept, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                    (ssize_t) sizeof accept &&
                hpct_net_session_open(session, guest->fd, &guest->proof, false);
    if (!done)
        hpct_net_guest_refuse(guest);
    return done;
}
