/* Frames over non-blocking sockets. */
#include <config.h>

#include "spank/stage/net/broadcast_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/net/link.h"
#include "base/status.h"

#define MAX_QUEUE (4u << 20) /* bytes of letters that the peer has not read */

int64_t hpct_stage_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void hpct_stage_link_open(hpct_stage_link *link, int fd)
{
    *link = (hpct_stage_link){.fd = fd,
                              .silence = hpct_link_silence_ms(fd, HPCT_OUTAGE_MS),
                              .received_at = hpct_stage_now(),
                              .sent_at = hpct_stage_now()};
}

void hpct_stage_link_close(hpct_stage_link *link, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};
    if (link->fd >= 0) {
        if (reset)
            setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(link->fd);
    }
    free(link->letter);
    free(link->out);
    *link = (hpct_stage_link){.fd = -1};
}

void hpct_stage_link_next(hpct_stage_link *link)
{
    free(link->letter);
    link->letter = link->data = NULL;
    link->filled = 0;
}

static hpct_stage_link_result read_some(hpct_stage_link *link, uint8_t *to, size_t size)
{
    for (;;) {
        ssize_t got = recv(link->fd, to, size, MSG_DONTWAIT);
        if (got > 0) {
            link->filled += (size_t) got;
            link->received_at = hpct_stage_now();
            return HPCT_STAGE_LINK_FRAME;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HPCT_STAGE_LINK_WAIT;
        return HPCT_STAGE_LINK_CLOSED;
    }
}

hpct_stage_link_result hpct_stage_link_read(hpct_stage_link *link, uint32_t most)
{
    while (link->filled < HPCT_WIRE_HEADER) {
        hpct_stage_link_result result =
            read_some(link, link->head + link->filled, HPCT_WIRE_HEADER - link->filled);
        if (result != HPCT_STAGE_LINK_FRAME)
            return result;
        if (link->filled < HPCT_WIRE_HEADER)
            continue;
        if (!hpct_wire_decode(&link->header, link->head) || link->header.size > most)
            return HPCT_STAGE_LINK_DAMAGED;
        return HPCT_STAGE_LINK_HEADER;
    }
    size_t whole = HPCT_WIRE_HEADER + (size_t) link->header.size;
    if (link->data == NULL) {
        link->data = link->letter = malloc((size_t) link->header.size + 1);
        if (link->data == NULL)
            return HPCT_STAGE_LINK_DAMAGED;
    }
    while (link->filled < whole) {
        hpct_stage_link_result result =
            read_some(link, link->data + (link->filled - HPCT_WIRE_HEADER), whole - link->filled);
        if (result != HPCT_STAGE_LINK_FRAME)
            return result;
    }
    return hpct_wire_check(&link->header, link->data) ? HPCT_STAGE_LINK_FRAME
                                                      : HPCT_STAGE_LINK_DAMAGED;
}

static bool make_room(hpct_stage_link *link, size_t more)
{
    size_t need = link->out_size + more;
    if (need > MAX_QUEUE)
        return false;
    if (need > link->out_room) {
        uint8_t *out = realloc(link->out, need);
        if (out == NULL)
            return false;
        link->out = out;
        link->out_room = need;
    }
    return true;
}

bool hpct_stage_link_follow(hpct_stage_link *link, hpct_stage_link *other)
{
    bool done = other->out_size == 0 || make_room(link, other->out_size);
    if (done && other->out_size > 0) {
        memcpy(link->out + link->out_size, other->out, other->out_size);
        link->out_size += other->out_size;
    }
    hpct_stage_link_close(other, false);
    return done;
}

bool hpct_stage_link_queue(hpct_stage_link *link, hpct_wire_type type, uint64_t sequence,
                           const void *data, uint32_t size)
{
    hpct_wire_header header = {.type = type, .size = size, .sequence = sequence};
    if (!make_room(link, HPCT_WIRE_HEADER + (size_t) size))
        return false;
    hpct_wire_encode(link->out + link->out_size, &header, data == NULL ? "" : data);
    if (size > 0)
        memcpy(link->out + link->out_size + HPCT_WIRE_HEADER, data, size);
    link->out_size += HPCT_WIRE_HEADER + (size_t) size;
    link->sent_at = hpct_stage_now();
    return true;
}

bool hpct_stage_link_flushed(const hpct_stage_link *link)
{
    return link->out_sent == link->out_size;
}

bool hpct_stage_link_flush(hpct_stage_link *link)
{
    while (link->out_sent < link->out_size) {
        ssize_t put = send(link->fd, link->out + link->out_sent, link->out_size - link->out_sent,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        link->out_sent += (size_t) put;
    }
    link->out_sent = link->out_size = 0;
    return true;
}

bool hpct_stage_link_send(hpct_stage_link *link, const uint8_t head[HPCT_WIRE_HEADER],
                          const uint8_t *data, size_t size, size_t *sent)
{
    size_t whole = HPCT_WIRE_HEADER + size;
    while (*sent < whole) {
        size_t in_head = *sent < HPCT_WIRE_HEADER ? HPCT_WIRE_HEADER - *sent : 0;
        size_t in_data = *sent < HPCT_WIRE_HEADER ? 0 : *sent - HPCT_WIRE_HEADER;
        /* not const in struct iovec, but sendmsg only reads */
        struct iovec parts[2] = {
            {.iov_base = (void *) (uintptr_t) (head + HPCT_WIRE_HEADER - in_head),
             .iov_len = in_head},
            {.iov_base = (void *) (uintptr_t) (data + in_data), .iov_len = size - in_data},
        };
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t put = sendmsg(link->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        *sent += (size_t) put;
    }
    return true;
}

/* One socket for both address families if the host has IPv6, else for IPv4. */
static int listen_on(int family, int port)
{
    const int yes = 1, no = 0;
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    const struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    hpct_link_set_options(fd, HPCT_REPEAT_MS);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    int failed = family == AF_INET6 ? bind(fd, (const struct sockaddr *) &any6, sizeof any6)
                                    : bind(fd, (const struct sockaddr *) &any4, sizeof any4);
    if (failed == 0 && listen(fd, 128) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

hpct_status hpct_stage_listen(int port, int *fd)
{
    *fd = listen_on(AF_INET6, port);
    if (*fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        *fd = listen_on(AF_INET, port);
    if (*fd < 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "port %d, where the other nodes' connections are awaited, cannot be used: "
                         "%s; choose others with --hpc-train-port",
                         port, strerror(errno));
    return HPCT_OK;
}

int hpct_stage_connect(const struct sockaddr_storage *to, socklen_t size)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    hpct_link_set_options(fd, HPCT_REPEAT_MS);
    if (connect(fd, (const struct sockaddr *) to, size) == 0 || errno == EINPROGRESS)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
