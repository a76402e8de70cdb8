/* Handshakes of a connector. */
#include "base/net/session.h"
#include "base/fd.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool hpct_net_session_open(hpct_net_session *session, int fd, hpct_auth_proof *proof,
                           bool connector)
{
    hpct_auth_key to_listener, to_connector;
    *session = (hpct_net_session){.fd = -1};
    bool done =
        hpct_auth_proof_finish(proof, &to_listener, &to_connector) &&
        hpct_auth_seal_new(&session->in, connector ? &to_connector : &to_listener) == HPCT_OK &&
        hpct_auth_seal_new(&session->out, connector ? &to_listener : &to_connector) == HPCT_OK;
    explicit_bzero(&to_listener, sizeof to_listener);
    explicit_bzero(&to_connector, sizeof to_connector);
    if (done)
        session->fd = fd;
    else
        hpct_net_session_close(session);
    return done;
}

void hpct_net_session_close(hpct_net_session *session)
{
    hpct_fd_close(session->fd);
    session->fd = -1;
    hpct_net_session_take_fd(session);
}

int hpct_net_session_take_fd(hpct_net_session *session)
{
    int fd = session->fd;
    hpct_auth_seal_free(session->in);
    hpct_auth_seal_free(session->out);
    *session = (hpct_net_session){.fd = -1};
    return fd;
}

void hpct_net_connecting_give_up(hpct_net_connecting *connecting)
{
    hpct_fd_close(connecting->fd);
    connecting->fd = -1;
    explicit_bzero(&connecting->proof, sizeof connecting->proof);
}

/* A new socket's buffer has room for this message, unless it is broken. */
static bool send_message(int fd, const void *data, size_t bytes)
{
    return send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) bytes;
}

hpct_status hpct_net_connecting_begin(hpct_net_connecting *connecting, int fd,
                                      const hpct_auth *auth, hpct_auth_purpose purpose,
                                      uint32_t from, uint32_t to)
{
    *connecting = (hpct_net_connecting){.fd = fd};
    hpct_status status = hpct_auth_proof_begin(&connecting->proof, auth, purpose, from, to);
    if (status != HPCT_OK)
        hpct_net_connecting_give_up(connecting);
    else /* a broken connection is detected when reading the answer */
        send_message(fd, connecting->proof.hello, HPCT_AUTH_PROOF_HELLO);
    return status;
}

static hpct_net_handshake fail(hpct_net_connecting *connecting)
{
    hpct_net_handshake how =
        connecting->answered ? HPCT_NET_HANDSHAKE_LEFT : HPCT_NET_HANDSHAKE_FOREIGN;
    hpct_net_connecting_give_up(connecting);
    return how;
}

static hpct_net_handshake open_session(hpct_net_connecting *connecting, hpct_net_session *session)
{
    if (!hpct_net_session_open(session, connecting->fd, &connecting->proof, true))
        return fail(connecting);
    connecting->fd = -1;
    return HPCT_NET_HANDSHAKE_DONE;
}

hpct_net_handshake hpct_net_connecting_step(hpct_net_connecting *connecting,
                                            hpct_net_session *session)
{
    for (;;) {
        size_t wanted = connecting->answered ? HPCT_AUTH_PROOF_ACCEPT : HPCT_AUTH_PROOF_ANSWER;
        uint8_t last[HPCT_AUTH_PROOF_LAST];
        ssize_t got = recv(connecting->fd, connecting->in + connecting->filled,
                           wanted - connecting->filled, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HPCT_NET_HANDSHAKE_WAIT;
        if (got <= 0)
            return fail(connecting);
        connecting->filled += (size_t) got;
        if (connecting->filled < wanted)
            continue;
        connecting->filled = 0;
        if (connecting->answered)
            return hpct_auth_proof_accepted(&connecting->proof, connecting->in)
                       ? open_session(connecting, session)
                       : fail(connecting);
        if (!hpct_auth_proof_answered(&connecting->proof, connecting->in, last))
            return fail(connecting);
        connecting->answered = true;
        if (!send_message(connecting->fd, last, sizeof last))
            return fail(connecting);
    }
}

hpct_net_handshake hpct_net_connecting_wait(hpct_net_connecting *connecting, int answer_ms,
                                            int64_t until_ms, hpct_net_session *session)
{
    int64_t answer_until_ms = hpct_now_ms() + answer_ms;
    for (;;) {
        hpct_net_handshake how = hpct_net_connecting_step(connecting, session);
        if (how != HPCT_NET_HANDSHAKE_WAIT)
            return how;
        int64_t until =
            connecting->answered || until_ms < answer_until_ms ? until_ms : answer_until_ms;
        int64_t left = until - hpct_now_ms();
        if (left <= 0) {
            bool answered = connecting->answered;
            hpct_net_connecting_give_up(connecting);
            return answered ? HPCT_NET_HANDSHAKE_LEFT : HPCT_NET_HANDSHAKE_WAIT;
        }
        struct pollfd waits = {.fd = connecting->fd, .events = POLLIN};
        poll(&waits, 1, (int) left);
    }
}
