/* Sockets; non-blocking frames in and out. */
#include "base/net/link.h"

#include "base/fd.h"
#include "base/net/resolve.h"
#include "base/status.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif
#define SLACK_MS 500 /* on busy machines */

static void set_options(int fd, int repeat_ms)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &repeat_ms, sizeof repeat_ms);
}

int hpct_net_link_silence_ms(int fd, int outage_ms)
{
    int repeat_ms = 0;
    socklen_t size = sizeof repeat_ms;
    if (getsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &repeat_ms, &size) != 0 ||
        repeat_ms > outage_ms)
        repeat_ms = outage_ms;
    return outage_ms + repeat_ms + HPCT_NET_LINK_BEAT_MS + SLACK_MS;
}

void hpct_net_link_init(hpct_net_link *link, const hpct_net_session *session)
{
    link->session = *session;
    link->in_filled = 0;
    link->out_filled = 0;
}

void hpct_net_link_close(hpct_net_link *link)
{
    hpct_net_session_close(&link->session);
}

void hpct_net_link_flush(hpct_net_link *link)
{
    while (link->session.fd >= 0 && link->out_filled > 0) {
        ssize_t sent =
            send(link->session.fd, link->out, link->out_filled, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return; /* full: retry later; broken: detected when reading */
        link->out_filled -= (size_t) sent;
        memmove(link->out, link->out + sent, link->out_filled);
    }
}

void hpct_net_link_send(hpct_net_link *link, const hpct_net_frame *frame)
{
    if (link->session.fd < 0 || link->out_filled + HPCT_NET_FRAME_BYTES > sizeof link->out ||
        !hpct_net_frame_encode(link->out + link->out_filled, frame, link->session.out))
        return;
    link->out_filled += HPCT_NET_FRAME_BYTES;
    hpct_net_link_flush(link);
}

hpct_net_link_result hpct_net_link_receive(hpct_net_link *link, hpct_net_frame *frame)
{
    while (link->in_filled < HPCT_NET_FRAME_BYTES) {
        ssize_t got = recv(link->session.fd, link->in + link->in_filled,
                           HPCT_NET_FRAME_BYTES - link->in_filled, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HPCT_NET_LINK_NOTHING;
        if (got <= 0)
            return HPCT_NET_LINK_CLOSED;
        link->in_filled += (size_t) got;
    }
    link->in_filled = 0;
    return hpct_net_frame_decode(frame, link->in, link->session.in) ? HPCT_NET_LINK_FRAME
                                                                    : HPCT_NET_LINK_GARBAGE;
}

static int port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *) (const void *) address)->sin6_port);
    return ntohs(((const struct sockaddr_in *) (const void *) address)->sin_port);
}

static int listen_on(int family, int port, int backlog, int repeat_ms)
{
    const int one = 1, zero = 0;
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    set_options(fd, repeat_ms);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
               sizeof one); /* allow reuse in TIME_WAIT of an earlier run */
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, family == AF_INET6 ? (const struct sockaddr *) &v6 : (const struct sockaddr *) &v4,
             family == AF_INET6 ? sizeof v6 : sizeof v4) == 0 &&
        listen(fd, backlog) == 0)
        return fd;
    hpct_fd_close(fd);
    return -1;
}

int hpct_net_link_open(int port, int backlog, int repeat_ms)
{
    int fd = listen_on(AF_INET6, port, backlog, repeat_ms);
    return fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)
               ? listen_on(AF_INET, port, backlog, repeat_ms)
               : fd;
}

hpct_status hpct_net_link_listen(int *fd, int *port, const char *host, int backlog)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    *fd = hpct_net_link_open(*port, backlog, HPCT_NET_LINK_REPEAT_MS);
    if (*fd < 0 && errno == EADDRINUSE)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "port %d on %s is in use by another program: choose another with "
                         "--hpc-train-port=PORT or --hpc-train-port=LO-HI",
                         *port, host);
    if (*fd < 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "cannot listen on port %d of %s: %s: choose another with --hpc-train-port",
                         *port, host, strerror(errno));
    if (getsockname(*fd, (struct sockaddr *) &bound, &length) == 0)
        *port = port_of(&bound);
    return HPCT_OK;
}

bool hpct_net_link_split_address(const char *address, char *host, size_t host_size, int *port)
{
    const char *colon = strrchr(address, ':');
    char *end = NULL;
    if (colon == NULL || colon == address)
        return false;
    size_t length = (size_t) (colon - address);
    if (address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    errno = 0;
    long value = strtol(colon + 1, &end, 10);
    if (errno != 0 || end == colon + 1 || *end != '\0' || value < 1 || value > 65535 ||
        length == 0 || length >= host_size)
        return false;
    memcpy(host, address, length);
    host[length] = '\0';
    *port = (int) value;
    return true;
}

/* Waits for a started connect; 0 or an errno. */
static int finish_connect(int fd, int timeout_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    int error = 0, ready;
    socklen_t length = sizeof error;
    do
        ready = poll(&poller, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return ETIMEDOUT;
    if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return errno;
    return error;
}

int hpct_net_link_begin_connect(const struct sockaddr_storage *to, socklen_t size, int repeat_ms)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    set_options(fd, repeat_ms);
    if (connect(fd, (const struct sockaddr *) to, size) == 0 || errno == EINPROGRESS)
        return fd;
    hpct_fd_close(fd);
    return -1;
}

/* One address: a connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr_storage *to, socklen_t size, int timeout_ms)
{
    int fd = hpct_net_link_begin_connect(to, size, HPCT_NET_LINK_REPEAT_MS);
    int error = fd < 0 ? errno : finish_connect(fd, timeout_ms);
    if (error == 0)
        return fd;
    hpct_fd_close(fd);
    errno = error;
    return -1;
}

hpct_status hpct_net_link_connect(int *fd, const char *address, int timeout_ms)
{
    char host[256];
    int port;
    hpct_net_addresses found;
    *fd = -1;
    if (!hpct_net_link_split_address(address, host, sizeof host, &port))
        return hpct_fail(HPCT_ERR_CONFIG, "'%s' is not an address of the form host:port", address);
    HPCT_TRY(hpct_net_resolve(&found, host, port, timeout_ms));
    for (int i = 0; i < found.num && *fd < 0; i++)
        *fd = connect_to(&found.at[i], found.size[i], timeout_ms);
    if (*fd >= 0)
        return HPCT_OK;
    int error = errno;
    hpct_fail(HPCT_ERR_PEER, "cannot connect to %s: %s", address, strerror(error));
    errno = error;
    return HPCT_ERR_PEER;
}

bool hpct_net_link_pass(int fd, void *data, size_t bytes, bool out, int64_t until_ms)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t moved = out ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, at, bytes, MSG_DONTWAIT);
        if (moved > 0) {
            at += moved;
            bytes -= (size_t) moved;
            continue;
        }
        int64_t left = until_ms - hpct_now_ms();
        if (moved == 0 || (errno != EAGAIN && errno != EINTR) || left <= 0)
            return false;
        struct pollfd waits = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        poll(&waits, 1, (int) left);
    }
    return true;
}
